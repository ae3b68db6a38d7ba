// Debian's hiredis as a client, and the lock that C programs build with it. This hiredis speaks RESP2 only;
// its reaction to RESP3 is also a step.
#include <numeric>
#include <string>
#include <vector>

#include "steps.h"

namespace {

constexpr const char* kCompareAndDelete =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";
constexpr const char* kCompareAndPexpire =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end "
    "return 0";
constexpr const char* kWrongType =
    "error WRONGTYPE Operation against a key holding the wrong kind of value";
constexpr const char* kNoScript = "error NOSCRIPT No matching script. Please use EVAL.";

std::string all_bytes() {
  std::string all(256, '\0');
  std::iota(all.begin(), all.end(), '\0');
  return all;
}

void test_handshake(redisContext* c) {
  expect(c, "PONG", "PING");
  expect(c, "\"text\"", "PING %s", "text");
  expect(c, "OK", "CLIENT SETNAME a-name");
  expect(c, "\"a-name\"", "CLIENT GETNAME");
  expect(c, "OK", "SELECT 3");
  expect(c, "OK", "SET only-here x");
  expect(c, "error ERR DB index is out of range", "SELECT 99");
  expect(c, "OK", "SELECT 0");
  expect(c, "0", "EXISTS only-here");
  expect(c, "error WRONGPASS invalid username-password pair or user is disabled.", "AUTH nobody x");
  expect(c, "error NOPROTO unsupported protocol version", "HELLO 4");
  const Connection quitter = connect_to_server();
  expect(quitter.get(), "OK", "QUIT");
  step("and closed", next(quitter.get()), "no reply: Server closed the connection");
  const Connection resp3 = connect_to_server();
  expect(resp3.get(), "no reply: Protocol error, got \"%\" as reply type byte", "HELLO 3");
}

void test_strings(redisContext* c) {
  const std::string all = all_bytes();
  expect(c, "OK", "SET %b %b", all.data(), all.size(), all.data(), all.size());
  const Reply reply(static_cast<redisReply*>(redisCommand(c, "GET %b", all.data(), all.size())));
  step("all bytes", std::to_string(std::string(reply->str, reply->len) == all), "1");
  const std::string big(5'000'000, 'x');
  expect(c, "OK", "SET big %b", big.data(), big.size());
  expect(c, "5000000", "STRLEN big");
  const Reply large(static_cast<redisReply*>(redisCommand(c, "GETDEL big")));
  step("5 MB there and back", std::to_string(large->len == big.size()), "1");
  expect(c, "OK", "SET s %s", "a b");
  expect(c, "\"a b\"", "GET s");
  expect(c, "nil", "GET none");
  expect(c, "nil", "SET s x NX");
  expect(c, "OK", "SET t %d PX %lld", 1, 30000LL);
  expect(c, "OK", "MSET a 1 b 2");
  expect(c, "[\"1\", nil, \"2\"]", "MGET a none b");
  expect(c, "3", "INCRBY a %d", 2);
  expect(c, "\"3.5\"", "INCRBYFLOAT a %f", 0.5);
  expect(c, "error ERR value is not an integer or out of range", "INCR s");
  expect(c, "error ERR wrong number of arguments for 'get' command", "GET");
  expect(c, "error ERR unknown command 'NOSUCH', with args beginning with: 'a' ", "NOSUCH a");
  expect(c, "OK", "SET short x PX 40");
  until("expiry", [c] { return ask(c, "EXISTS short") == "0"; });
  expect(c, "-2", "PTTL short");
}

void test_hashes(redisContext* c) {
  expect(c, "2", "HSET h f %b g %s", "\0\xff", size_t{2}, "2");
  expect(c, "[\"f\", \"\\x00\\xff\", \"g\", \"2\"]", "HGETALL h");
  expect(c, "[\"2\", nil]", "HMGET h g none");
  expect(c, "7", "HINCRBY h g 5");
  expect(c, kWrongType, "GET h");
  expect(c, "2", "HDEL h f g");
  expect(c, "0", "EXISTS h");
  expect(c, "[]", "HGETALL h");
}

// Sends words as an array of pointers and sizes, without a format.
void test_words(redisContext* c) {
  std::vector<std::string> words = {"MSET"};
  for (int i = 0; i < 2000; ++i) {
    words.push_back("word:" + std::to_string(i));
    words.emplace_back("\r\n\0", 3);
  }
  std::vector<const char*> starts;
  std::vector<size_t> sizes;
  for (const std::string& word : words) {
    starts.push_back(word.data());
    sizes.push_back(word.size());
  }
  const Reply reply(static_cast<redisReply*>(
      redisCommandArgv(c, static_cast<int>(words.size()), starts.data(), sizes.data())));
  step("4,001 words", shown(c, reply.get()), "OK");
  expect(c, "\"\\x0d\\x0a\\x00\"", "GET word:1999");
}

void test_pipelines(redisContext* c) {
  for (const char* command : {"SET p 1", "INCR p", "HGET p f", "GET p", "GET"}) {
    redisAppendCommand(c, command);
  }
  for (const char* expected :
       {"OK", "2", kWrongType, "\"2\"", "error ERR wrong number of arguments for 'get' command"}) {
    step("a pipeline's reply", next(c), expected);
  }
  for (int i = 0; i < 10'000; ++i) {
    redisAppendCommand(c, "INCR many");
  }
  std::string last;
  for (int i = 0; i < 10'000; ++i) {
    last = next(c);
  }
  step("10,000 at once", last, "10000");
}

void test_transactions(redisContext* c) {
  const Connection other = connect_to_server();
  expect(c, "OK", "MULTI");
  expect(c, "QUEUED", "SET m 1");
  expect(c, "QUEUED", "HGET m f");
  expect(c, std::string("[OK, ") + kWrongType + "]", "EXEC");
  expect(c, "OK", "WATCH m");
  expect(other.get(), "2", "INCR m");
  expect(c, "OK", "MULTI");
  expect(c, "QUEUED", "SET m 9");
  expect(c, "nil", "EXEC");
  expect(c, "OK", "MULTI");
  expect(c, "error ERR unknown command 'NOSUCH', with args beginning with: ", "NOSUCH");
  expect(c, "error EXECABORT Transaction discarded because of previous errors.", "EXEC");
  expect(c, "error ERR DISCARD without MULTI", "DISCARD");
  expect(c, "OK", "SET short x PX 300");
  expect(c, "OK", "WATCH short");
  until("expiry", [&] { return ask(other.get(), "EXISTS short") == "0"; });
  expect(c, "OK", "MULTI");
  expect(c, "QUEUED", "GET m");
  expect(c, "nil", "EXEC");
}

void test_scripts(redisContext* c) {
  expect(c, "OK", "SCRIPT FLUSH");
  expect(c, kNoScript, "EVALSHA %s 0", "0000000000000000000000000000000000000000");
  expect(c, "\"e0e1f9fabfc9d4800c877a703b823ac0578ff8db\"", "SCRIPT LOAD %s", "return 1");
  expect(c, "1", "EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0");
  expect(c, "[1, 0]", "SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db x");
  expect(c, "[1, 3, 1, nil, [\"k\", \"\\x00\\xff\"], FINE]", "EVAL %s 1 k %b",
         "return {1, 3.99, true, false, {KEYS[1], ARGV[1]}, {ok='FINE'}}", "\0\xff", size_t{2});
  expect(c, "error MY own", "EVAL %s 0", "return redis.error_reply('MY own')");
}

void test_pubsub(redisContext* c) {
  const Connection subscriber = connect_to_server();
  redisContext* s = subscriber.get();
  expect(s, "[\"subscribe\", \"one\", 1]", "SUBSCRIBE one two");
  step("the second one", next(s), "[\"subscribe\", \"two\", 2]");
  expect(s, "[\"psubscribe\", \"jobs.*\", 3]", "PSUBSCRIBE jobs.*");
  expect(c, "1", "PUBLISH one %b", "a\r\n\0", size_t{4});
  expect(c, "1", "PUBLISH jobs.1 x");
  expect(c, "0", "PUBLISH none x");
  step("a message", next(s), "[\"message\", \"one\", \"a\\x0d\\x0a\\x00\"]");
  step("of a pattern", next(s), "[\"pmessage\", \"jobs.*\", \"jobs.1\", \"x\"]");
  expect(s, "[\"pong\", \"\"]", "PING");
  expect(s,
         "error ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are "
         "allowed "
         "in this context",
         "GET x");
  expect(s, "[\"unsubscribe\", \"two\", 2]", "UNSUBSCRIBE two");
  expect(s, "[\"punsubscribe\", \"jobs.*\", 1]", "PUNSUBSCRIBE");
  expect(s, "[\"unsubscribe\", \"one\", 0]", "UNSUBSCRIBE");
  expect(s, "[\"unsubscribe\", nil, 0]", "UNSUBSCRIBE");
  expect(s, "PONG", "PING");
}

void test_locks(redisContext* c) {
  const Connection other = connect_to_server();
  expect(c, "OK", "SET res me NX PX 30000");
  expect(other.get(), "nil", "SET res you NX PX 30000");
  expect(c, "1", "EVAL %s 1 res me 60000", kCompareAndPexpire);
  expect(other.get(), "0", "EVAL %s 1 res you 1", kCompareAndPexpire);
  expect(other.get(), "0", "EVAL %s 1 res you", kCompareAndDelete);
  expect(c, "1", "EVAL %s 1 res me", kCompareAndDelete);
  expect(c, "OK", "SET res me NX PX 40");
  until("expiry", [&] { return ask(other.get(), "SET res you NX PX 30000") == "OK"; });
  expect(c, "0", "EVAL %s 1 res me", kCompareAndDelete);
  expect(other.get(), "1", "EVAL %s 1 res you", kCompareAndDelete);
  std::vector<Connection> crowd;
  for (int i = 0; i < 200; ++i) {
    crowd.push_back(connect_to_server());
    redisAppendCommand(crowd.back().get(), "SET crowd %d NX PX 30000", i);
    int done = 0;
    redisBufferWrite(crowd.back().get(), &done);
  }
  int granted = 0;
  for (const Connection& member : crowd) {
    granted += next(member.get()) == "OK" ? 1 : 0;
  }
  step("200 at once, of whom one gets it", std::to_string(granted), "1");
}

// A lock acquired by SET NX, and LOCK on the same key.
void test_mixing(redisContext* c) {
  const Connection waiter = connect_to_server();
  step("native: the library holds it", ask(c, "SET mix lib NX PX 30000"), "OK");
  step("native: LOCK is refused", ask(waiter.get(), "LOCK mix me 10000"), "nil");
  redisAppendCommand(waiter.get(), "LOCK mix me 10000 WAIT 15000");
  int done = 0;
  redisBufferWrite(waiter.get(), &done);
  until("a waiter",
        [c] { return ask(c, "INFO clients").find("blocked_clients:1\\x0d") != std::string::npos; });
  step("native: release", ask(c, "EVAL %s 1 mix lib", kCompareAndDelete), "1");
  step("native: it wakes the LOCK that waits", next(waiter.get()).substr(0, 7), "[\"me\", ");
  step("native: the library is refused", ask(c, "SET mix lib NX PX 30000"), "nil");
  step("native: UNLOCK", ask(waiter.get(), "UNLOCK mix me"), "1");
  step("native: the library gets it", ask(c, "SET mix lib NX PX 30000"), "OK");
}

}  // namespace

int main() {
  const Connection c = connect_to_server();
  ask(c.get(), "FLUSHALL");
  for (auto test : {test_handshake, test_strings, test_hashes, test_words, test_pipelines,
                    test_transactions, test_scripts, test_pubsub, test_locks}) {
    test(c.get());
  }
  test_async();
  if (on_holdfast()) {
    test_mixing(c.get());
  }
}
