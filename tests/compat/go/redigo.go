// Debian's redigo as a client, and the lock that Go programs build with it.
package main

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	wrongType  = "error WRONGTYPE Operation against a key holding the wrong kind of value"
	noScript   = "error NOSCRIPT No matching script. Please use EVAL."
	deleteLua  = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"
	pexpireLua = "if redis.call('get', KEYS[1]) == ARGV[1] then " +
		"return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0"
)

var (
	compareAndDelete  = redis.NewScript(1, deleteLua)
	compareAndPexpire = redis.NewScript(1, pexpireLua)
)

func allBytes() []byte {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return all
}

func handshake(c redis.Conn) {
	send(c, "PONG", "PING")
	send(c, `"text"`, "PING", "text")
	echo, _ := redis.Bytes(c.Do("ECHO", allBytes()))
	step("echo of all bytes", bytes.Equal(echo, allBytes()), "true")
	other := dial(redis.DialDatabase(3), redis.DialClientName("a-name"))
	send(other, `"a-name"`, "CLIENT", "GETNAME")
	send(other, "OK", "SET", "only-here", "x")
	send(c, "0", "EXISTS", "only-here")
	byURL, err := redis.DialURL("redis://" + address + "/3")
	step("by URL", err, "nil")
	send(byURL, `"x"`, "GET", "only-here")
	_, err = redis.Dial("tcp", address, redis.DialDatabase(99))
	step("database 99", err, "error ERR DB index is out of range")
	_, err = redis.Dial("tcp", address, redis.DialUsername("nobody"), redis.DialPassword("x"))
	step("an unknown user", err, "error WRONGPASS invalid username-password pair or user is disabled.")
	info, _ := redis.String(c.Do("INFO"))
	step("info", strings.Contains(info, "\r\nrole:master\r\n"), "true")
	send(byURL, "OK", "QUIT")
	step("and closed", outcome(byURL.Receive()), "error EOF")
}

func text(c redis.Conn) {
	send(c, "OK", "SET", "s", "a\r\n\x00b")
	send(c, `"a\r\n\x00b"`, "GET", "s")
	send(c, "nil", "GET", "none")
	_, err := redis.String(c.Do("GET", "none"))
	step("ErrNil", err, "error redigo: nil returned")
	send(c, "OK", "SET", allBytes(), allBytes())
	big := bytes.Repeat([]byte("0123456789abcdef\x00\r\n\xff"), 250000)
	send(c, "OK", "SET", "big", big)
	back, _ := redis.Bytes(c.Do("GETDEL", "big"))
	step("5 MB there and back", bytes.Equal(back, big), "true")
	send(c, "nil", "SET", "s", "x", "NX")
	send(c, "nil", "SET", "t", "x", "XX")
	send(c, "OK", "SET", "t", 1, "NX", "PX", 30000)
	send(c, `"1"`, "GETSET", "t", 2.5)
	send(c, "OK", "MSET", redis.Args{}.Add("a", 1).AddFlat([]interface{}{"b", 2})...)
	send(c, `["1" nil "2"]`, "MGET", "a", "none", "b")
	send(c, "0", "MSETNX", "a", 9, "c", 9)
	send(c, "7", "INCRBY", "n", 7)
	send(c, `"7.5"`, "INCRBYFLOAT", "n", 0.5)
	send(c, "4", "APPEND", "app", "abcd")
	send(c, "7", "SETRANGE", "app", 6, "z")
	send(c, `"bcd\x00\x00"`, "GETRANGE", "app", 1, 5)
	send(c, "error ERR value is not an integer or out of range", "INCR", "app")
	send(c, "error ERR wrong number of arguments for 'get' command", "GET")
	send(c, "error ERR unknown command 'NOSUCH', with args beginning with: 'a' ", "NOSUCH", "a")
	send(c, "OK", "FLUSHALL")
}

func expiry(c redis.Conn) {
	send(c, "OK", "SET", "e", "x", "PX", 30000)
	ttl, _ := redis.Int(c.Do("PTTL", "e"))
	step("pttl", 29000 < ttl && ttl <= 30000, "true")
	send(c, "0", "EXPIRE", "e", 100, "NX")
	send(c, "1", "EXPIRE", "e", 100, "GT")
	send(c, "100", "TTL", "e")
	send(c, "1", "PEXPIREAT", "e", 4102444800123)
	send(c, "4102444800123", "PEXPIRETIME", "e")
	send(c, "1", "PERSIST", "e")
	send(c, "-1", "TTL", "e")
	send(c, "-2", "TTL", "none")
	send(c, "error ERR invalid expire time in 'setex' command", "SETEX", "e", 0, "x")
	send(c, "OK", "SET", "short", "x", "PX", 40)
	until("expiry", func() bool { n, _ := redis.Int(c.Do("EXISTS", "short")); return n == 0 })
}

type settings struct {
	Name string `redis:"name"`
	Size int    `redis:"size"`
	On   bool   `redis:"on"`
}

func keysAndHashes(c redis.Conn) {
	written := settings{"a\x00b", 7, true}
	send(c, "3", "HSET", redis.Args{}.Add("h").AddFlat(&written)...)
	var read settings
	values, _ := redis.Values(c.Do("HGETALL", "h"))
	step("scan struct", redis.ScanStruct(values, &read), "nil")
	step("the same", read == written, "true")
	send(c, `["7" nil]`, "HMGET", "h", "size", "none")
	send(c, "9", "HINCRBY", "h", "size", 2)
	send(c, "1", "HDEL", "h", "on", "none")
	send(c, `["name" "size"]`, "HKEYS", "h")
	send(c, wrongType, "GET", "h")
	for i := 0; i < 300; i++ {
		c.Send("SET", fmt.Sprint("key:", i), i)
	}
	c.Do("")
	found, cursor := map[string]bool{}, "0"
	for first := true; first || cursor != "0"; first = false {
		part, _ := redis.Values(c.Do("SCAN", cursor, "MATCH", "key:*", "COUNT", 40))
		var names []string
		redis.Scan(part, &cursor, &names)
		for _, name := range names {
			found[name] = true
		}
	}
	step("scan", len(found), "300")
	send(c, "OK", "RENAME", "key:1", "new")
	send(c, "error ERR no such key", "RENAME", "none", "x")
	send(c, "2", "UNLINK", "new", "key:2", "none")
	send(c, "string", "TYPE", "key:3")
	send(c, "1", "COPY", "key:3", "there", "DB", 5)
	send(c, "OK", "FLUSHALL")
}

func pipelines(c redis.Conn) {
	c.Send("SET", "p", 1)
	c.Send("INCR", "p")
	c.Send("INCR")
	c.Send("GET", "p")
	c.Flush()
	for i, expected := range []string{"OK", "2", "error ERR wrong number of arguments for 'incr' command",
		`"2"`} {
		step(fmt.Sprint("receive ", i), outcome(c.Receive()), expected)
	}
	for i := 0; i < 10000; i++ {
		c.Send("INCR", "many")
	}
	all, _ := redis.Int64s(c.Do(""))
	step("10,000 at once", all[9999], "10000")
}

func transactions(c redis.Conn) {
	other := dial()
	c.Send("MULTI")
	c.Send("SET", "m", 1)
	c.Send("INCR", "m")
	c.Send("HGET", "m", "f")
	step("multi", outcome(c.Do("EXEC")), "[OK 2 "+wrongType+"]")
	send(c, "OK", "WATCH", "m")
	c.Send("MULTI")
	c.Send("INCR", "m")
	step("watch, unchanged", outcome(c.Do("EXEC")), "[3]")
	send(c, "OK", "WATCH", "m")
	send(other, "OK", "SET", "m", 100)
	send(c, "OK", "MULTI")
	send(c, "QUEUED", "SET", "m", 5)
	send(c, "nil", "EXEC")
	send(c, "OK", "MULTI")
	send(c, "error ERR wrong number of arguments for 'set' command", "SET")
	send(c, "error EXECABORT Transaction discarded because of previous errors.", "EXEC")
	send(c, "error ERR EXEC without MULTI", "EXEC")
	send(c, "OK", "SET", "short", "x", "PX", 300)
	send(c, "OK", "WATCH", "short")
	until("expiry", func() bool { n, _ := redis.Int(other.Do("EXISTS", "short")); return n == 0 })
	c.Send("MULTI")
	c.Send("GET", "m")
	step("watch sees an expiry", outcome(c.Do("EXEC")), "nil")
}

func scripts(c redis.Conn) {
	send(c, "OK", "SCRIPT", "FLUSH")
	send(c, noScript, "EVALSHA", compareAndDelete.Hash(), 1, "k", "v")
	send(c, "OK", "SET", "k", "v")
	step("a script, after NOSCRIPT", outcome(compareAndDelete.Do(c, "k", "x")), "0")
	step("now loaded", outcome(compareAndDelete.Do(c, "k", "v")), "1")
	send(c, "[1 0]", "SCRIPT", "EXISTS", compareAndDelete.Hash(), strings.Repeat("0", 40))
	step("load", compareAndPexpire.Load(c), "nil")
	compareAndPexpire.SendHash(c, "k", "v", 1)
	compareAndDelete.Send(c, "k", "v")
	step("in a pipeline", outcome(c.Do("")), "[0 0]")
	all := redis.NewScript(1, "return {1, 3.99, true, false, {KEYS[1], ARGV[1]}, {ok='FINE'}}")
	step("values from Lua", outcome(all.Do(c, "k\x00", allBytes()[255:])),
		`[1 3 1 nil ["k\x00" "\xff"] FINE]`)
	own := redis.NewScript(0, "return redis.error_reply('MY own')")
	step("an error", outcome(own.Do(c)), "error MY own")
}

func heard(p redis.PubSubConn) string {
	switch m := p.Receive().(type) {
	case redis.Subscription:
		return fmt.Sprint(m.Kind, " ", m.Channel, " ", m.Count)
	case redis.Message:
		return fmt.Sprintf("%s %s %q", m.Pattern, m.Channel, m.Data)
	case redis.Pong:
		return "pong " + m.Data
	default:
		return fmt.Sprint(m)
	}
}

func pubsub(c redis.Conn) {
	p := redis.PubSubConn{Conn: dial()}
	p.Subscribe("one", "two")
	p.PSubscribe("jobs.*")
	step("subscribe", []interface{}{heard(p), heard(p), heard(p)},
		"[subscribe one 1 subscribe two 2 psubscribe jobs.* 3]")
	send(c, "1", "PUBLISH", "one", "a\r\n\x00")
	send(c, "1", "PUBLISH", "jobs.1", "x")
	send(c, "0", "PUBLISH", "none", "x")
	step("messages", []interface{}{heard(p), heard(p)}, `[ one "a\r\n\x00" jobs.* jobs.1 "x"]`)
	p.Ping("there?")
	step("ping while subscribed", heard(p), "pong there?")
	send(c, `["one" 1 "none" 0]`, "PUBSUB", "NUMSUB", "one", "none")
	p.Unsubscribe("two")
	p.PUnsubscribe("jobs.*")
	p.Unsubscribe()
	step("unsubscribe", []interface{}{heard(p), heard(p), heard(p)},
		"[unsubscribe two 2 punsubscribe jobs.* 1 unsubscribe one 0]")
	send(p.Conn, "PONG", "PING")
}

func pool() {
	p := &redis.Pool{MaxActive: 20, MaxIdle: 20, Wait: true,
		Dial:         func() (redis.Conn, error) { return dial(), nil },
		TestOnBorrow: func(c redis.Conn, _ time.Time) error { _, err := c.Do("PING"); return err }}
	var workers sync.WaitGroup
	for i := 0; i < 200; i++ {
		workers.Add(1)
		go func() {
			defer workers.Done()
			c := p.Get()
			defer c.Close()
			c.Do("INCR", "pooled")
		}()
	}
	workers.Wait()
	step("200 goroutines share 20", outcome(p.Get().Do("GET", "pooled")), `"200"`)
	step("not more than 20", p.Stats().ActiveCount <= 20, "true")
}

func acquire(c redis.Conn, name, owner string, ms int) bool {
	got, err := c.Do("SET", name, owner, "NX", "PX", ms)
	return err == nil && got == "OK"
}

func locks(c redis.Conn) {
	other := dial()
	step("acquire", acquire(c, "res", "me", 30000), "true")
	step("contention", acquire(other, "res", "you", 30000), "false")
	step("extend", outcome(compareAndPexpire.Do(c, "res", "me", 60000)), "1")
	step("extend another's", outcome(compareAndPexpire.Do(other, "res", "you", 1)), "0")
	step("release another's", outcome(compareAndDelete.Do(other, "res", "you")), "0")
	send(c, "OK", "SCRIPT", "FLUSH")
	step("release, after script flush", outcome(compareAndDelete.Do(c, "res", "me")), "1")
	step("release twice", outcome(compareAndDelete.Do(c, "res", "me")), "0")
	step("acquire for a moment", acquire(c, "res", "me", 40), "true")
	until("expiry", func() bool { return acquire(other, "res", "\x00\xff", 30000) })
	step("release of a lost lock", outcome(compareAndDelete.Do(c, "res", "me")), "0")
	send(c, `"\x00\xff"`, "GET", "res")
	step("release, binary", outcome(compareAndDelete.Do(c, "res", "\x00\xff")), "1")
}

func fight() {
	var inside, most, entered int32
	var fighters sync.WaitGroup
	for i := 0; i < 50; i++ {
		fighters.Add(1)
		go func(owner string) {
			defer fighters.Done()
			c := dial()
			for round := 0; round < 4; round++ {
				until("the lock", func() bool { return acquire(c, "fought", owner, 60000) })
				if now := atomic.AddInt32(&inside, 1); now > 1 {
					atomic.StoreInt32(&most, now)
				}
				atomic.AddInt32(&entered, 1)
				time.Sleep(time.Millisecond) // so that the test sees a second holder
				atomic.AddInt32(&inside, -1)
				compareAndDelete.Do(c, "fought", owner)
			}
		}(fmt.Sprint("goroutine ", i))
	}
	fighters.Wait()
	step("50 clients enter", entered, "200")
	step("two at one time", most, "0")
}

func mixing(c redis.Conn) {
	waiter := dial()
	native("the library holds it", acquire(c, "mix", "lib", 30000), "true")
	native("LOCK is refused", outcome(waiter.Do("LOCK", "mix", "me", 10000)), "nil")
	got := make(chan interface{})
	go func() { got <- outcome(waiter.Do("LOCK", "mix", "me", 10000, "WAIT", 15000)) }()
	until("a waiter", func() bool {
		info, _ := redis.String(c.Do("INFO", "clients"))
		return strings.Contains(info, "blocked_clients:1\r\n")
	})
	begun := time.Now()
	native("release", outcome(compareAndDelete.Do(c, "mix", "lib")), "1")
	var owner string
	var token int64
	granted, _ := redis.Values(<-got, nil)
	_, err := redis.Scan(granted, &owner, &token)
	native("wakes the LOCK that waits", err == nil && owner == "me" && token > 0, "true")
	native("at once", time.Since(begun) < 5*time.Second, "true")
	native("the library is refused", acquire(c, "mix", "lib", 30000), "false")
	native("UNLOCK", outcome(waiter.Do("UNLOCK", "mix", "me")), "1")
	native("lets the library in", acquire(c, "mix", "lib", 30000), "true")
	native("released by its owner's name", outcome(waiter.Do("UNLOCK", "mix", "lib")), "1")
}

func main() {
	c := dial()
	send(c, "OK", "FLUSHALL")
	for _, part := range []func(redis.Conn){handshake, text, expiry, keysAndHashes, pipelines, transactions,
		scripts,
		pubsub, locks} {
		part(c)
	}
	pool()
	fight()
	if holdfast {
		mixing(c)
	}
}
