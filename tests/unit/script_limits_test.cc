// Limits of one script: arguments at the ends of integers, time that passes in C, memory that Lua does not
// allocate itself, and the cache.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/base/sha1.h"
#include "core/engine/engine_parts.h"
#include "session.h"

namespace holdfast {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

struct Case {
  std::string name;
  std::string script;
};

Config small_config() {
  Config config = session_config();
  config.limits.script_memory_bytes = 32 * kMiB;
  config.limits.script_run_bytes = 8 * kMiB;
  return config;
}

// Each read of the clock advances it by 2 ms, which does not change how often it is read.
Config config_with_clock(int64_t hard_ms) {
  Config config = small_config();
  config.clock_us = [us = int64_t{0}]() mutable { return us += 2000; };
  config.limits.busy_reply_ms = 1'000'000;
  config.limits.script_hard_ms = hard_ms;
  return config;
}

std::string eval(TestClient& c, const std::string& script) { return c.ask({"EVAL", script, "0"}); }

}  // namespace

TEST_CASE(
    "script limits: unpack returns at most as many results as fit on the stack, whatever its limits") {
  Engine engine(small_config());
  TestClient c(engine);
  for (const std::string range :
       {"-2147483648,2147483647", "-2147483640,7", "-10,2147483647", "0,2147483647", "1,8000"}) {
    CAPTURE(range);
    CHECK(
        eval(c, "unpack({}," + range + ")").starts_with("-ERR user_script:1: too many results to unpack"));
  }
  CHECK(eval(c, "return {unpack({1,2,3},2147483647,2147483646)}") == "*0\r\n");
  CHECK(eval(c, "return #{unpack({1,2,3},2,3)}") == ":2\r\n");
  CHECK(eval(c, "return select('#',unpack({},2147483647,2147483647))") == ":1\r\n");
  CHECK(eval(c, "return select('#',unpack({},-2147483648,-2147483648))") == ":1\r\n");
  CHECK(eval(c, "return select('#',unpack({},1,7000))") == ":7000\r\n");
}

TEST_CASE("script limits: offsets and positions at the ends of integers are rejected or harmless") {
  Engine engine(small_config());
  TestClient c(engine);
  const std::string short_data = "data string too short";
  for (const std::string at :
       {"-9223372036854775808", "-9223372036854775807", "-8", "-1", "9223372036854775807"}) {
    CAPTURE(at);
    CHECK(eval(c, "return struct.unpack('!8l', string.rep('x',64)," + at + ")").find(short_data) !=
          std::string::npos);
    CHECK(eval(c, "return {string.find('abc','b'," + at + ")}").starts_with("*"));
    CHECK(eval(c, "return string.sub('abc'," + at + "," + at + ")").starts_with("$"));
  }
  CHECK(eval(c, "return struct.unpack('l','x',0)").find("offset must be 1 or greater") !=
        std::string::npos);
  CHECK(eval(c, "local t={1,2} table.insert(t,2147483647,3) return t[2147483647]") == ":3\r\n");
  CHECK(eval(c, "local t={1,2} table.insert(t,-1,3) return {t[-1],t[2],t[3]}") ==
        "*3\r\n:3\r\n:1\r\n:2\r\n");
}

TEST_CASE("script limits: script-timeout ends long calls in C") {
  const std::vector<Case> cases = {
      {"redis.call", "for i=1,3000 do redis.call('KEYS','*') end"},
      {"sha1hex", "local s=string.rep('x',100000) for i=1,200 do redis.sha1hex(s) end"},
      {"collectgarbage", "for i=1,2000 do collectgarbage() end"},
      {"coroutines", "for i=1,3000 do coroutine.wrap(function() for j=1,500 do end end)() end"},
      {"nested coroutines",
       "local function f(n) for j=1,500 do end if n>0 then coroutine.wrap(f)(n-1) end end "
       "for i=1,100 do f(20) end"},
      {"table.insert before the first", "pcall(table.insert,{},-50000,1)"},
      {"table.sort",
       "local t={} for i=1,5000 do t[i]=(i*7919)%5000 end for i=1,20 do table.sort(t) t[1]=9999 end"},
      {"table.sort with a function of C",
       "local t={} for i=1,5000 do t[i]=i end pcall(table.sort,t,rawequal)"
       "pcall(table.sort,t,rawequal)"},
      {"cjson.decode", "cjson.decode('[' .. string.rep('1,',50000) .. '1]')"},
      {"cjson.encode",
       "local t={} for i=1,100 do t[i]=i end local u={} for i=1,300 do u[i]=t end cjson.encode(u)"},
      {"cmsgpack.pack",
       "local t={} for i=1,100 do t[i]=i end local u={} for i=1,300 do u[i]=t end cmsgpack.pack(u)"},
      {"cmsgpack.unpack", "cmsgpack.unpack('\\221\\0\\0\\200\\0' .. string.rep('\\1',51200))"},
      {"struct.unpack", "pcall(struct.unpack,string.rep('>',50000),'x')"},
      {"string.find", "string.find(string.rep('a',100),string.rep('a-',4)..'b')"},
      {"string.match", "string.match(string.rep('a',100),string.rep('a*',4)..'b')"},
      {"string.gmatch", "for w in string.gmatch(string.rep('a',100),string.rep('a?',20)..'b') do end"},
      {"string.gsub",
       "string.gsub(string.rep('(',300),'%b()','') string.gsub(string.rep('(',300),'%b()','')"},
      {"loadstring", "loadstring('return ' .. string.rep('1+',100000) .. '1')"},
      {"the reply", "local t={} for i=1,100 do t[i]=1 end local u={} for i=1,300 do u[i]=t end return u"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.name);
    Engine engine(config_with_clock(20));
    TestClient c(engine);
    const bool replies = one.script.find("return u") != std::string::npos;
    CHECK(eval(c, one.script + (replies ? "" : " return 'ran on'"))
              .starts_with("-ERR Script killed: it ran for"));
    CHECK(eval(c, "return 1") == ":1\r\n");
  }
}

TEST_CASE("script limits: script-timeout ends the compiling of a long script") {
  Engine engine(config_with_clock(20));
  TestClient c(engine);
  const std::string killed = "-ERR Script killed: it ran for";
  std::string sum = "return 0";
  for (int i = 0; i < 100'000; ++i) sum += "+1";
  CHECK(eval(c, sum).starts_with(killed));
  CHECK(c.ask({"SCRIPT", "LOAD", sum}).starts_with(killed));
  CHECK(eval(c, "return 1") == ":1\r\n");
}

TEST_CASE("script limits: the first script makes the Lua state, also after a flush") {
  Engine engine(small_config());
  TestClient c(engine);
  const std::string none = "used_memory_scripts:0\r\n";
  CHECK(c.ask({"INFO", "memory"}).find(none) != std::string::npos);
  CHECK(c.ask({"SCRIPT", "FLUSH"}) == "+OK\r\n");
  CHECK(c.ask({"EVALSHA", std::string(40, '0'), "0"}).starts_with("-NOSCRIPT"));
  Effects fx;
  engine.tick(session_time(0), fx);
  CHECK(c.ask({"INFO", "memory"}).find(none) != std::string::npos);
  CHECK(eval(c, "return 7") == ":7\r\n");
  CHECK(c.ask({"INFO", "memory"}).find(none) == std::string::npos);
}

TEST_CASE("script limits: memory that C allocates for a script counts as the script's memory") {
  const std::vector<Case> cases = {
      {"cmsgpack.pack",
       "local t={} local s=string.rep('x',1000) for i=1,60000 do t[i]=s end return #cmsgpack.pack(t)"},
      {"cmsgpack.pack of nested tables",
       "local t={1} for i=1,14 do local u={} for j=1,10 do u[j]=t end t=u end return #cmsgpack.pack(t)"},
      {"struct.pack", "local s=string.rep('x',4000000) return #struct.pack('c0c0c0c0',s,s,s,s)"},
      {"cjson.encode",
       "local s=string.rep('x',1000000) local t={} for i=1,100 do t[i]=s end return #cjson.encode(t)"},
      {"cjson.encode of a list with holes",
       "cjson.encode_sparse_array(false,0,0) return #cjson.encode({[100000000]=1})"},
      {"gsub", "return #string.gsub(string.rep('x',1000000),'x',string.rep('y',1000))"},
      {"a reply", "local s=string.rep('x',1000000) local t={} for i=1,100 do t[i]=s end return t"},
      {"a reply of nested tables",
       "local t={1} for i=1,14 do local u={} for j=1,10 do u[j]=t end t=u end return t"},
      {"a reply of redis.call",
       "redis.call('SET','k',string.rep('x',1000000)) local a={} for i=1,100 do a[i]='k' end "
       "return #redis.call('MGET',unpack(a))"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.name);
    Engine engine(small_config());
    TestClient c(engine);
    CHECK(eval(c, one.script).find("not enough memory") != std::string::npos);
    CHECK(engine.state().scripts.memory_bytes() < 32 * kMiB);
    CHECK(eval(c, "return 1") == ":1\r\n");
  }
}

TEST_CASE("script limits: a script may return its arguments, however large") {
  Engine engine(small_config());
  TestClient c(engine);
  const std::string large(12 * kMiB, 'x');
  CHECK(c.ask({"EVAL", "return ARGV[1]", "0", large}).size() > large.size());
}

TEST_CASE("script limits: settings and tables of cjson end with the script that made them") {
  Engine engine(small_config());
  TestClient c(engine);
  CHECK(eval(c,
             "for i=1,5000 do cjson.new() end cjson.encode_max_depth(3000) "
             "local t={} for i=1,2999 do t={t} end pcall(cjson.encode,t) return 1") == ":1\r\n");
  CHECK(eval(c, "return cjson.encode_max_depth()") == ":1000\r\n");
  CHECK(eval(c, "cjson.encode_number_precision(1) return cjson.encode(1/3)") == "$3\r\n0.3\r\n");
  CHECK(eval(c, "return cjson.encode(1/3)") == "$16\r\n0.33333333333333\r\n");
}

TEST_CASE("script cache: above 500 scripts of EVAL the least recently used one is evicted") {
  Engine engine(small_config());
  TestClient c(engine);
  const auto sha = [&c](const std::string& body) { return c.ask({"SCRIPT", "LOAD", body}).substr(5, 40); };
  const std::string loaded = sha("return 'loaded'");
  for (int i = 0; i < 500; ++i) eval(c, "return " + std::to_string(i));
  const ScriptHost& host = engine.state().scripts;
  CHECK(host.cached() == 501);
  CHECK(host.evicted() == 0);
  eval(c, "return 0");
  eval(c, "return 500");
  CHECK(host.cached() == 501);
  CHECK(host.evicted() == 1);
  CHECK(c.ask({"EVALSHA", sha1_hex("return 0"), "0"}) == ":0\r\n");
  CHECK(c.ask({"EVALSHA", sha1_hex("return 1"), "0"}).starts_with("-NOSCRIPT "));
  sha("return 2");  // the next one to evict, unless it is used
  for (int i = 1000; i < 2000; ++i)
    CHECK(eval(c, "return " + std::to_string(i)) == ":" + std::to_string(i) + "\r\n");
  CHECK(c.ask({"EVALSHA", loaded, "0"}) == "$6\r\nloaded\r\n");
  CHECK(c.ask({"EVALSHA", sha1_hex("return 2"), "0"}) == ":2\r\n");
  CHECK(host.cached() == 502);
}

TEST_CASE("script cache: a client that fills the script memory does not evict other clients' scripts") {
  Engine engine(small_config());
  TestClient hostile(engine);
  TestClient other(engine);
  int number = 0;
  std::string last;
  for (const bool by_eval : {false, true}) {
    CAPTURE(by_eval);
    for (const int size : {20'000, 1'000, 50, 1}) {  // large ones first, then the gaps between them
      std::string body = "return {";
      for (int i = 0; i < size; ++i) body += std::to_string(i) + ",";
      for (int i = 0; i < 70; ++i) {
        const std::string distinct = body + std::to_string(++number) + ".5}";
        last = by_eval ? eval(hostile, distinct) : hostile.ask({"SCRIPT", "LOAD", distinct});
      }
      CHECK(eval(other, "return " + std::to_string(number)) == ":" + std::to_string(number) + "\r\n");
      CHECK(eval(other, "return #string.rep('x',1000000) + " + std::to_string(number)) ==
            ":" + std::to_string(1'000'000 + number) + "\r\n");
    }
    CHECK((last.find("not enough memory") != std::string::npos) == !by_eval);
  }
  CHECK(engine.state().scripts.memory_bytes() <= 32 * kMiB);
}

TEST_CASE("script cache: EVAL runs the script of its body, after others were added, evicted and flushed") {
  Engine engine(session_config());
  TestClient c(engine);
  const auto check = [&](size_t i) {
    CAPTURE(i);
    const std::string number = std::to_string(i);
    CHECK(c.ask({"EVAL", "return " + number, "0"}) == ":" + number + "\r\n");
  };
  for (size_t i = 0; i < ScriptHost::kEvictable + 100; ++i) {
    check(i);
    check(i / 2);  // some are still cached, others are not
  }
  CHECK(c.ask({"SCRIPT", "FLUSH"}) == "+OK\r\n");
  for (size_t i = 0; i < 10; ++i) check(i);
  CHECK(c.ask({"EVAL", "return redis.call('get', KEYS[1])", "1", "key"}) == "$-1\r\n");
}

}  // namespace holdfast
