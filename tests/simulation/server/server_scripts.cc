// The programs.
#include "server_scripts.h"

namespace holdfast::simulation {

namespace {

// Programs that call commands.
const std::vector<std::string> kCallers = {
    "return redis.call('SET', KEYS[1], ARGV[1], 'PX', 5000)",
    "redis.call('INCR', 'count') redis.call('HSET', 'h', 's', 1) return redis.call('DEL', KEYS[1])",
    "return redis.call('LOCK', KEYS[1], ARGV[1], 30000)",
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end",
    "return {redis.pcall('HGET', KEYS[1], 'f1'), KEYS, {ok='fine'}, {err='ERR bad'}, 3.7, false, true}",
    "redis.setresp(3) redis.call('HSET', 'h', 'a', ARGV[1]) return redis.call('HGETALL', 'h')",
    "#!lua flags=no-writes\nreturn redis.call('GET', KEYS[1])",
    "#!lua flags=no-writes,allow-stale\nreturn redis.call('SET', KEYS[1], 'x')",
    "return redis.call('NOTHING')",
    "return redis.call('LOCK', KEYS[1], ARGV[1], '100', 'WAIT', '5')",
    "redis.call('LEASE', 'GRANT', 'L1', '5000', KEYS[1], ARGV[1]) return redis.call('LEASE', 'INFO', "
    "'L1')",
    "redis.call('SELECT', 1) redis.call('SET', KEYS[1], ARGV[1]) return redis.call('PTTL', KEYS[1])",
    "for i = 1, 40 do redis.call('HSET', 'h', 'f' .. i, i) end return redis.call('HLEN', 'h')",
    "redis.call('RENAME', KEYS[1], 'moved') return redis.call('EXPIRE', 'moved', 3)",
    "return redis.call('PUBLISH', 'c1', ARGV[1])",
    "xpcall(function() error('x') end, function(e) return redis.call('SET', KEYS[1], 'handled') end)",
    "redis.setresp(3) return {redis.call('INFO', 'server'), redis.call('COMMAND', 'INFO', 'get')}",
};

// Programs that use the libraries, or are wrong.
const std::vector<std::string> kOthers = {
    "return {double = 1.5}",
    "return {map = {a = 1, b = {set = {x = true}}}}",
    "error({err = 'MINE went wrong'})",
    "error('a plain error')",
    "return redis.error_reply('NOPE ' .. ARGV[1])",
    "return redis.status_reply('FINE')",
    "return redis.sha1hex(ARGV[1] or '')",
    "redis.log(redis.LOG_WARNING, 'from a script', ARGV[1])",
    "redis.replicate_commands() redis.set_repl(redis.REPL_ALL) return redis.acl_check_cmd('GET', 'k')",
    "return cjson.encode(cjson.decode('{\"a\":[1,2.5,null,true,\"x\\\\u00e9\\\\n\"],\"b\":{}}'))",
    "return cjson.decode(ARGV[1])",
    "return cmsgpack.pack({1, -5, 300, 70000, 1e10, 1.5, 'text', {a = {true, false}}, string.rep('z', "
    "300)})",
    "return {cmsgpack.unpack(cmsgpack.pack(1, 'b', {3}, {x = 'y'}))}",
    "return struct.pack('>I2hi8zbs', 1, 2, 3, 'ab', 4, 'rest')",
    "return {struct.unpack('<I4i2', 'abcdef'), struct.size('<I4i2')}",
    "return {bit.tohex(bit.bor(1, 6)), bit.band(7, 3), bit.bxor(5, 1), bit.lshift(1, 4), bit.rol(8, 2), "
    "bit.arshift(-8, 1), bit.bswap(1), bit.bnot(0)}",
    "local t = {} for i = 1, 50 do t[i] = (i * 7) % 50 end table.sort(t) return table.concat(t, ',', 1, "
    "9)",
    "local t = {} for w, n in string.gmatch('a=1, b=2', '(%w+)=(%w+)') do t[#t + 1] = w .. n end return "
    "t",
    "return {string.gsub('hello world', 'o', {o = '0'}), string.find('a.b', '.', 1, true), string.format("
    "'%5.1f|%q|%s|%x', 1.25, 'q', 'r', 255), string.match('key=val', '^(%w+)=(%w*)$')}",
    "local co = coroutine.wrap(function() coroutine.yield(1) return 2 end) return {co(), co()}",
    "return {pcall(function() return nil + 1 end)}",
    "return {select('#', unpack({1, 2, nil, 4})), tostring(nil), tonumber('0x10'), type(print)}",
    "x = 1",
    "return nowhere",
    "this is no Lua",
    "#!lua flags=wrong\nreturn 1",
    "return string.rep('x', 100000)",
    "return setmetatable({}, {__index = function() return 1 end})[3]",
    "local function f(n) return n == 0 and 0 or 1 + f(n - 1) end return f(150)",
    "return {string.match('ab12 .x', '%a+%d*%s?%p'), string.find('x(y(z))', '%b()'), string.match('aa', "
    "'(a)%1'), "
    "string.gsub('THE (quick) fox', '%f[%a]%a+', '%0.%1'), string.match('aXb', '[%u]'), "
    "string.match('abc', "
    "'^(.-)c$'), string.match('x\\0y', '%z'), string.find('a-b', '[^%l]'), string.match('0x1F', "
    "'%x+%c*%w'), ''}",
    "return {string.gsub('abc', '%w', function(c) return c == 'b' and 'B' or nil end)}",
    "local f = loadstring('return 1 + 1') local n = 0 local g = load(function() n = n + 1 return "
    "({'return ', "
    "'3'})[n] end) return f() + g()",
    "collectgarbage() collectgarbage('step') return collectgarbage('count') > 0",
    "local n = 0 for k, v in pairs(redis) do n = n + 1 end for k in next, string do n = n + 1 end return "
    "n",
    "rawset(redis, 'y', 1)",
    "cjson.encode_sparse_array(true) cjson.encode_number_precision(5) return cjson.encode({1.23456789, "
    "[5] = 2})",
    "cjson.encode_max_depth(3) return cjson.new().encode({{{{{{}}}}}, x = '\\1\"/'})",
    "return cjson.decode('[\"\\\\ud83d\\\\ude00\\\\u0416\", 1e400, -0, [[[[]]]], tru]')",
    "return {cmsgpack.unpack_limit('\\1\\2\\3', 2)}",
    "return {cmsgpack.unpack('\\205\\1\\2\\208\\255\\209\\1\\2\\202\\0\\0\\0\\0\\192\\220\\0\\1\\3')}",
    "return math.floor(math.random(10) + math.random() + math.random(2, 3)), math.randomseed(7)",
    "local t = {3, 1, 2} table.insert(t, 5) table.insert(t, 1, 9) table.sort(t, function(a, b) return a "
    "> b end) "
    "table.remove(t) return t",
    "return {struct.unpack('>fd!4i', struct.pack('>fd!4i', 1.5, 2.5, 7)), struct.unpack('<c0', 'x')}",
    "return {bit.rshift(-1, 3), bit.ror(1, 1), bit.tohex(-1, -4), bit.tobit(2 ^ 33)}",
    "return {verbatim_string = {string = 'x', format = 'txt'}}",
    "return {big_number = '12345678901234567890'}",
    "local co = coroutine.create(function(a) local b = coroutine.yield(a) error(b) end) return "
    "{coroutine.resume(co, "
    "1), coroutine.resume(co, 2), coroutine.status(co)}",
};

}  // namespace

const std::vector<std::string>& scripts() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> both = kCallers;
    both.insert(both.end(), kOthers.begin(), kOthers.end());
    return both;
  }();
  return all;
}

const std::vector<std::string>& slow_scripts() {
  static const std::vector<std::string> all = {
      "local n = 0 while n < 1e6 do n = n + 1 end return n",
      "for i = 1, 3000 do redis.call('INCR', 'count') end return 1",
      "local n = 0 while n < 1e6 do n = n + 1 end redis.call('SET', KEYS[1], ARGV[1])",
      "redis.call('SET', KEYS[1], ARGV[1]) local n = 0 while n < 1e6 do n = n + 1 end",
      "local t = {} for i = 1, 1e6 do t[i] = string.rep('x', 1000) .. i end return #t",
      "local s = 'x' for i = 1, 40 do s = s .. s end return #s",
      "return string.find(string.rep('a', 2000), string.rep('a?', 2000) .. 'b')",
      "return pcall(function() local n = 0 while n < 1e6 do n = n + 1 end end)",
      "local function f(n) return 1 + f(n + 1) end return f(0)",
  };
  return all;
}

}  // namespace holdfast::simulation
