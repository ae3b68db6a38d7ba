// A lock by hand with redigo: SET NX PX, and scripts that compare. Arguments: the ports of two proxies.
package main

import (
	"bufio"
	"fmt"
	"os"

	"github.com/gomodule/redigo/redis"
)

var (
	releaseScript = redis.NewScript(1,
		"if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0")
	extendScript = redis.NewScript(1,
		"if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0")
	input = bufio.NewReader(os.Stdin)
)

func connected(port string) redis.Conn {
	c, err := redis.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		panic(err)
	}
	return c
}

func acquire(c redis.Conn, value string) bool {
	reply, err := c.Do("SET", "job", value, "NX", "PX", 30000)
	return err == nil && reply != nil
}

func run(c redis.Conn, script *redis.Script, words ...any) bool {
	n, err := redis.Int(script.Do(c, append([]any{"job"}, words...)...))
	return err == nil && n == 1
}

func waitForTheTest() {
	fmt.Println("ready")
	_, _ = input.ReadString('\n')
}

func main() {
	one, two := connected(os.Args[1]), connected(os.Args[2])
	fmt.Println("held", acquire(one, "one"))
	fmt.Println("other", acquire(two, "one"))
	waitForTheTest()
	fmt.Println("extended", run(one, extendScript, "one", 40000))
	fmt.Println("other", acquire(two, "two"))
	fmt.Println("released", run(one, releaseScript, "one"))
	waitForTheTest()
	fmt.Println("other", acquire(two, "two"))
	fmt.Println("released", run(two, releaseScript, "two"))
}
