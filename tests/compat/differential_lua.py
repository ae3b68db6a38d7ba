"""Makes small Lua scripts: conversions both ways, errors, calls of random commands, number formats, the
sandbox, and the libraries cjson, cmsgpack, bit and struct.

No script has an undefined result: no addresses in tostring(table), no order of pairs(), no times.
"""
from differential_commands import TIMED
from differential_sets import FILLING
from differential_words import FIELDS, KEYS, VALUES

NUMBERS = (
    "0", "1", "-1", "3.99", "-3.99", "1e15", "1e16", "2^53", "-2^53", "2^31", "2^32", "2^63", "-2^63",
    "1e100", "1/0", "-1/0", "0.1", "1/3", "100", "1e14", "123456789012345", "1e-7", "-0", "0x10",
    "1e308*10", "5e-324", "2147483647", "2147483648", "4294967295", "0/0")
INTEGERS = ("0", "1", "-1", "255", "65536", "2^31", "3.5")
TABLES = (
    "{}", "{1,2,3}", "{1,nil,3}", "{nil}", "{false,7}", "{true,false}", "{{1},{2,{3}}}", "{'a','b',3.7}",
    "{ok='fine'}", "{err='My Err'}", "{err='ERR x'}", "{err='oneword'}", "{err=''}", "{ok=1}", "{err=1}",
    "{a=1}", "{1,a=2}", "{double=3.5}", "{double='x'}", "{map={a=1}}", "{set={a=true}}", "{map={}}",
    "{set={}}", "{big_number='123'}", "{big_number='a\\r\\nb'}",
    "{verbatim_string={format='txt',string='hello'}}", "{verbatim_string={}}", "{ok='a\\r\\nb'}",
    "{err='a\\r\\nb'}", "{double=1/0}", "{double=-1/0}", "{double=0.1}", "{double=3}", "{double=1e17}",
    "{ok='x',err='y'}", "{{ok='x'},{err='y'}}", "{{double=1.5}}", "{1,{2,nil,3},'x'}")
SETRESP = (
    "", "", "", "redis.setresp(3) ", "redis.setresp(2) ", "redis.setresp(3) ", "redis.setresp(4) ",
    "redis.setresp() ")
ERRORS = (
    "error('boom')", "error('boom', 0)", "error('boom', 2)", "error({err='ERR in table'})",
    "error({err='MYCODE x'})", "error()", "error(nil)", "error(12)", "error(true)",
    "error({err='x', ok='y'})", "nosuch()", "local a = nil; return a.b", "return nosuch", "nosuch = 1",
    "return 1 + {}", "return 'a' + 1", "return #nil", "return {} .. 'x'", "return 1 < 'x'",
    "return {} < {}", "return redis.nosuch()", "return ('x'):nosuch()", "this is no lua", "return (",
    "x = = 1", "return 'unfinished", "goto x", "for", "local function f() f() end f()",
    "local function f() return f() + 1 end return f()", "return redis.call()", "return redis.call({})",
    "return redis.call(nil)", "return redis.call('get', {})", "return redis.call('get', true)",
    "return redis.pcall()", "return redis.call('nosuch', 'x')", "return redis.call('get')",
    "return redis.pcall('get', 'a', 'b')", "return redis.call('multi')",
    "return redis.pcall('subscribe', 'x')", "return redis.call('eval', 'return 1', 0)",
    "return redis.call('auth', 'x')", "return redis.call('watch', 'x')",
    "return redis.call('script', 'load', 'x')", "return redis.call('client', 'id')",
    "return redis.call('config', 'get', 'databases')", "return redis.call('hello')",
    "return redis.call('object', 'nosuch', 'x')", "return redis.pcall('blah').err",
    "return redis.call('\\r\\n')", "local r = redis.pcall('get') error(r)",
    "local r = redis.pcall('hget', KEYS[1]) return r.err",
    "local ok, e = pcall(redis.call, 'get') return {tostring(ok), type(e), e.err or e}",
    "local ok, e = pcall(error, 'x') return e", "local ok, e = pcall(error, {err='x'}) return e",
    "local ok, e = pcall(function() return nosuch end) return e",
    "return xpcall(function() error('x') end, function(e) return e end)",
    "local ok, e = xpcall(error, function(e) return 'H:' .. tostring(e) end) return {tostring(ok), e}",
    "assert(false)", "assert(nil, 'told')", "assert(false, {err='ERR t'})", "return assert(1, 2)",
    "return unpack({1,2,3})", "return unpack({}, 1, 1e7)", "return select('#', unpack({1,nil,3}, 1, 3))",
    "return ...", "return #arg")
EXPRESSIONS = (
    "tostring(@n)", "@n .. ''", "@n .. '|' .. @n", "string.format('%d', @i)", "string.format('%5.2f', @n)",
    "string.format('%q', @s)", "string.format('%s', @n)", "string.format('%.14g', @n)",
    "string.format('%x', @i)", "string.format('%s %s', 'a')", "string.format('%10s|%-10s|', 'a', 'b')",
    "string.format('%c%c', 72, 105)", "string.format('%e', @n)", "string.format('%i', @i)",
    "string.format('%y', 1)", "string.format('%5d|%-5d|%05d', 1, 2, 3)", "tonumber(@s)", "tonumber(@s, 16)",
    "tonumber('z', 36)", "tonumber('8', 8)", "tonumber('0x1F')", "tonumber(' 12 ')", "tonumber('1e2')",
    "@n + @n", "@n * @n", "@n % 7", "@n ^ 2", "@n == @n", "'10' + 5", "'0x10' * 1", "10 .. 20", "-'3'",
    "math.floor(@n)", "math.ceil(@n)", "math.max(@n, 1)", "math.min(@n, 1, 2)", "math.abs(@n)",
    "math.fmod(7, 3)", "math.pi", "math.huge", "math.sqrt(2)", "math.modf(3.7)", "math.pow(2, 10)",
    "math.max(1, '2')", "math.floor('3.7')", "math.floor({})", "string.rep(@s, 3)", "string.sub(@s, 2, -2)",
    "string.byte(@s, 1, -1)", "string.upper(@s)", "string.lower(@s)", "string.reverse(@s)",
    "string.len(@s)", "#@s", "string.char(0, 255, 10)", "string.char(256)", "(@s):find('l')",
    "(@s):find('.', 1, true)", "(@s):match('(%a+)(%d*)')", "(@s):gsub('[aeiou]', '*')",
    "('abc'):gsub('%w', '%0%0')", "('abc'):gsub('b', {b='X'})", "('abc'):gsub('(a)(b)', '%2%1')",
    "('x=1'):match('(%w+)=(%w+)')", "('abc'):gsub('(', '')", "('a,b,c'):gsub(',', ';', 1)",
    "('  trim '):match('^%s*(.-)%s*$')", "('abc'):rep(0)", "('[x]'):find('[', 1, true)",
    "table.concat({1,2,3}, ',')", "table.concat({1,{},3})", "table.concat({})", "table.getn({1,2})",
    "#{1,2,nil,4}", "table.maxn({1,2,[10]=3})", "select('#', 1, nil, 3)", "select(2, 'a', 'b', 'c')",
    "select(-1, 'a', 'b')", "select(0)", "type(@n)", "type(nil)", "type({})", "type(redis.call)",
    "rawequal(1, 1)", "rawget({a=1}, 'a')", "next({})", "next({5})", "tostring(nil)", "tostring(true)",
    "tostring('x')", "#KEYS", "#ARGV", "KEYS[1]", "ARGV[1]", "ARGV[99]", "KEYS[-1]", "redis.sha1hex(@s)",
    "redis.sha1hex()", "redis.sha1hex(12)", "redis.sha1hex('a', 'b')", "redis.status_reply('X')",
    "redis.error_reply('ERROR')", "redis.error_reply('MY code here')", "redis.error_reply('-X y')",
    "redis.error_reply('')", "redis.error_reply()", "redis.status_reply()", "redis.error_reply({})",
    "redis.status_reply('a b', 'c')", "redis.error_reply('a\\r\\nb')", "redis.error_reply('ERR x').err",
    "redis.status_reply('OK').ok", "redis.log(redis.LOG_DEBUG, 'x')", "redis.log()", "redis.log('x', 'y')",
    "redis.log(99, 'x')", "redis.LOG_NOTICE", "redis.REPL_ALL", "redis.REPL_NONE",
    "redis.replicate_commands()", "redis.set_repl(redis.REPL_ALL)", "redis.set_repl(77)",
    "redis.set_repl()", "math.random()", "math.random(100)", "math.random(5, 10)", "math.random(0)",
    "math.random(1, 2, 3)", "type(os)", "type(os.clock)", "type(io)", "type(print)", "type(loadstring)",
    "type(load)", "type(dofile)", "type(require)", "type(loadfile)", "type(newproxy)",
    "type(collectgarbage)", "type(coroutine)", "type(debug)", "type(package)", "type(setfenv)",
    "type(module)", "type(string.dump)", "type(getmetatable)", "type(_G)", "type(cjson.null)", "os.nosuch",
    "_VERSION", "type(rawset)", "type(math.randomseed)", "getmetatable('') == nil",
    "loadstring('return 1+1')()", "loadstring('return (')", "loadstring('\\27Lua')",
    "setmetatable(redis, {})", "setmetatable(_G, {})",
    "setmetatable({}, {__index=function(t,k) return k end}).abc", "pcall(setmetatable, _G, {})",
    "rawset(_G, 'x', 1)", "rawset(redis, 'x', 1)", "rawset({}, 'x', 1).x",
    "coroutine.wrap(function() coroutine.yield(7) end)()", "pcall(string.rep)", "pcall(error)",
    "tostring(-0)", "0/0 ~= 0/0")
STATEMENTS = (
    "redis.x = 1", "string.x = 1", "math.floor = nil", "KEYS[1] = 'changed' return KEYS[1]", "KEYS = nil",
    "ARGV = {1} return ARGV[1]", "_G.x = 1", "_G['redis'] = 1", "local t = {3,1,2} table.sort(t) return t",
    "local t = {3,1,2} table.sort(t, function(a,b) return a>b end) return t",
    "local t = {1,2,3} table.insert(t, 2, 'x') return t",
    "local t = {1,2,3} return {table.remove(t), table.remove(t, 1), #t}",
    "local t = {} table.insert(t) return t", "local s = 0 for i = 1, 100 do s = s + i end return s",
    "local r = {} for i, v in ipairs(KEYS) do r[i] = v .. i end return r",
    "local t = {1, 'x'} table.sort(t) return t",
    "local t = {} for i = 1, 2000 do t[i] = (i * 7919) % 2003 end "
    "table.sort(t) return {t[1], t[1000], t[2000]}", "return pcall(table.sort, {3, 1, 2}, rawequal)",
    "local t = {} for i = 1, 1500 do t[i] = 'k' .. i end table.sort(t) return {t[1], t[700], t[1500]}",
    "local f = coroutine.wrap(function() error('in it') end) return {pcall(f)}",
    "local f = coroutine.wrap(function(a) local b = coroutine.yield(a + 1) return b * 2 end) return "
    "{f(1), f(5)}",
    "local f = coroutine.wrap(function() end) f() return {pcall(f)}",
    "coroutine.wrap(function() nosuch() end)()",
    "return {coroutine.resume(coroutine.create(function(...) return select('#', ...), ... end), 1, nil, "
    "3)}",
    "return {pcall(coroutine.resume, 1)}", "return {pcall(coroutine.wrap, 1)}",
    "return {pcall(coroutine.create)}",
    "return {unpack({1, 2, 3}, 2)}", "return {unpack({1, 2, 3}, -1, 1)}", "return {pcall(unpack, 'x')}",
    "return {pcall(table.insert, {1}, 1, 2, 3)}",
    "local t = {1,2} table.insert(t, 9, 'x') return {#t, t[9]}",
    "return {pcall(loadstring, 'return (')}", "return {loadstring('x = = 1', 'name')}",
    "return {loadstring('return 1', '@at')()}", "return collectgarbage('count') > 0",
    "return collectgarbage()", "for k, v in pairs({a=1}) do return {k, v} end",
    "local i = 0 while true do i = i + 1 if i > 10 then break end end return i",
    "local i = 5 repeat i = i - 1 until i == 0 return i", "do return end", "", "return", "return nil",
    "return true", "return false", "return 1, 2", "--x\nreturn 1", "\n\nerror('third')",
    "\nlocal x = nil\nreturn x.y", "return {1, 2, {3, 'x'}, {ok='s'}}", "local a <const> = 1",
    "return 7 // 2", "return 5 & 3", "local t = {} t[1]=1 t[2]=2 t[4]=4 return t", "return KEYS",
    "return ARGV", "return {KEYS, ARGV}", "return {#KEYS, #ARGV}", "return _VERSION", "return cjson",
    "return redis.call", "return {redis.call}", "return {function() end, 1}", "return function() end",
    "return coroutine.create(function() end)", "collectgarbage()", "#!lua\nreturn 1",
    "#!lua flags=no-writes\nreturn redis.call('set', KEYS[1] or 'k', 'v')", "#!lua name=x\nreturn 1",
    "#!python\nreturn 1", "#!lua flags=nosuch\nreturn 1", "#!lua flags=no-writes,allow-stale\nreturn 'x'",
    "#!lua", "#!lua\n", "#!lua foo=bar\nreturn 1", "#!lua flags=\nreturn 1",
    "#!lua flags=no-writes flags=no-writes\nreturn 1", "#!\nreturn 1",
    "#!lua flags=allow-oom\nerror('second')")
JSON_TEXT = (
    "'[1,2,3]'", "'{\"a\":1}'", "'[]'", "'{}'", "'null'", "'[null]'", "'\"x\"'", "'1.5'", "'[1e3,-0,0.1]'",
    "'{\"a\":{\"b\":[true,false]}}'", "'[1,'", "''", "'nope'", "'[1,2]x'", "'\"\\\\u00e9\"'", "'{\"a\"}'",
    "'[01]'", "'[0x10]'", "'[NaN]'", "'[Infinity]'", "' [ 1 ] '", "'\"\\\\ud83d\\\\ude00\"'", "'\"\\\\q\"'",
    "'[' .. string.rep('[', 1100)", "string.rep('[', 500) .. string.rep(']', 500)", "'\"a\\\\nb\"'",
    "'[123456789012345678]'", "nil", "12", "{}")
JSON_VALUES = (
    "{}", "{1,2,3}", "{a=1}", "'x'", "1", "1.5", "true", "cjson.null", "nil", "{1,nil,3}", "{[1]=1,[3]=3}",
    "{[1]=1,[100]=3}", "{{},{{}}}", "'\\\"\\\\/\\b\\n\\0'", "1e100", "1/3", "100000000000000", "1e15",
    "0/0", "1/0", "function() end", "{[true]=1}", "{[1.5]=1}", "{['']=1}", "'\\255'", "'\\194\\169'",
    "{a={b={1,2}}}", "-0", "{false}", "123456789012", "{[1]='a',[2]='b'}", "{[10]=1}", "'\\127'", "'</x>'")
PACK_VALUES = (
    "1", "-1", "127", "128", "255", "256", "65535", "65536", "4294967295", "4294967296", "2^53", "-32",
    "-33", "-128", "-129", "-32768", "-32769", "-2147483648", "-2147483649", "1.5", "0.1", "1e100", "true",
    "false", "nil", "''", "'abc'", "string.rep('x', 31)", "string.rep('x', 32)", "string.rep('x', 256)",
    "string.rep('x', 70000):sub(1,66000):len()", "{}", "{1,2,3}", "{a=1}", "{1,nil,3}", "{{1},{2}}",
    "{[1]=1,[3]=3}", "{[0]=1}", "{[1.5]=2}", "1/0", "-0", "{1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17}",
    "function() end", "2^31", "2^63", "2^64", "0/0", "1, 'x', {2}")
PACKED = (
    "'\\1'", "'\\147\\1\\2\\3'", "'\\129\\161a\\1'", "'\\192'", "'\\195'",
    "'\\203\\63\\240\\0\\0\\0\\0\\0\\0'", "'\\202\\63\\128\\0\\0'", "'\\205\\1'", "'\\193'", "''",
    "'\\1\\2\\3'", "'\\147\\1'", "'\\163ab'", "'\\207\\255\\255\\255\\255\\255\\255\\255\\255'",
    "'\\211\\255\\255\\255\\255\\255\\255\\255\\255'", "'\\224'", "'\\217\\1x'", "12", "nil")
BITS = (
    "tobit(@n)", "tohex(@n)", "tohex(@i, 4)", "tohex(@i, -4)", "bnot(@n)", "band(@n, @n)", "bor(@n, 5)",
    "bxor(@n, 255, 1)", "lshift(@i, 3)", "rshift(@i, 3)", "arshift(@i, 3)", "rol(@i, 8)", "ror(@i, 8)",
    "bswap(@i)", "band()", "band('x')", "band('7', 3)", "tohex(255, 0)", "lshift(1, 33)", "nosuch(1)")
STRUCTS = (
    "pack('>I', 1)", "pack('<I2', 513)", "pack('>i8', -2)", "pack('bBhHlL', 1, 2, 3, 4, 5, 6)",
    "pack('s', 'hello')", "pack('c0', 'hello')", "pack('c3', 'hello')", "pack('Bc0', 5, 'hello')",
    "pack('d', 1.5)", "pack('f', 1.5)", "pack('>d', 0.1)", "pack('!4bi', 1, 2)", "pack('x')",
    "pack('I33', 1)", "pack('I0', 1)", "pack('y', 1)", "pack('i')", "pack('c9', 'x')", "size('bhil')",
    "size('!8bd')", "size('s')", "size('c10')", "unpack('>I', '\\0\\0\\1\\2')", "unpack('<H', '\\1\\2')",
    "unpack('s', 'abc\\0def')", "unpack('Bc0', '\\3hello')", "unpack('>i', 'ab')", "unpack('b', '\\255')",
    "unpack('B', '\\255')", "unpack('d', struct.pack('d', 2.5))", "unpack('bb', '\\1\\2', 2)",
    "unpack('I', '\\1\\2\\3\\4', 99)", "unpack('c0', 'x')", "unpack('s', 'abc')",
    "unpack('f', '\\0\\0\\192\\63')", "unpack('', '')", "pack()", "unpack('b')", "unpack('b', 'x', -1)")


def quoted(data):
    """A Lua literal of any bytes."""
    return '"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:03d}" for b in data) + '"'


CALLS = (
    "return {}", "return {}", "return {}", "local a = {} return a", "return type({})", "return {{{}}}",
    "{}", "local a = {} return {{type(a), a}}", "return {} == false", "return tostring({} ~= nil)",
    "return #{}",
    "local a = {} if type(a) == 'table' then return {{'t', a.ok or '', a.err or ''}} end return a",
    "return cjson.encode({{{}}})", "two")
LOCKS = (
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end",
    "if redis.call('get', KEYS[1]) == ARGV[1] then\n"
    "  return redis.call('pexpire', KEYS[1], 400000000000)\nelse\n  return 0\nend",
    "return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', 400000000000)",
    "if redis.call('exists', KEYS[1]) == 0 then\n  redis.call('hincrby', KEYS[1], 'n', 1)\n  return nil\n"
    "end\nreturn redis.call('type', KEYS[1])",
    "redis.call('set', KEYS[1], ARGV[1]) return redis.call('get', KEYS[1])",
    "return redis.call('mget', unpack(KEYS))",
    "if redis.call('set', KEYS[1], ARGV[1], 'NX') then return 1 end\nreturn redis.call('type', KEYS[1]).ok",
    "local n = redis.call('incr', KEYS[1]) return {n, n + 0.5}",
    "redis.call('select', 1) return redis.call('set', KEYS[1], ARGV[1])")
JSON_CALLS = (
    "encode", "decode", "nosuch", "encode_max_depth", "decode_max_depth", "encode_sparse_array",
    "encode_number_precision", "encode_invalid_numbers", "encode_keep_buffer", "decode_array_with_array_mt")
# Each script restores the setting that it changes, so that it does not affect later scripts.
JSON_SETTINGS = (
    "return {pcall(cjson.encode_max_depth, @i)}, cjson.encode_max_depth(1000)",
    "cjson.encode_max_depth(2) local r = {pcall(cjson.encode, {{{1}}})} cjson.encode_max_depth(1000) "
    "return r",
    "cjson.decode_max_depth(2) local r = {pcall(cjson.decode, '[[[1]]]')} cjson.decode_max_depth(1000) "
    "return r",
    "cjson.encode_number_precision(3) local r = cjson.encode(@n == @n and 1/3 or 2/3) "
    "cjson.encode_number_precision(14) return r",
    "cjson.encode_sparse_array(true, 1, 1) local r = cjson.encode({[9]=1}) "
    "cjson.encode_sparse_array(false, 2, 10) return r",
    "cjson.encode_invalid_numbers('null') local r = cjson.encode({0/0, 1/0}) "
    "cjson.encode_invalid_numbers(false) return r",
    "cjson.decode_invalid_numbers(false) local r = {pcall(cjson.decode, '[0x1F]')} "
    "cjson.decode_invalid_numbers(true) return r")
PATTERN_ITEMS = (
    "a", "b", ".", "%a", "%d", "%s", "%w", "%W", "%x", "%p", "%z", "[ab]", "[^ab]", "[%a_]", "[a-c]",
    "[]]", "[^]]",
    "%%", "%.", "%b()", "%f[%w]", "%1", "%2", "()", "(", ")", "(a", "b)", "^", "$", "[", "%", "x", "-",
    "]", " ",
    "[%]]", "[a-]", "[-a]", "%f", "%b", "%bx", "(a*(.)%w(%s*))", "\\000", "\\255", "[%z-\\127]")
SUBJECTS = (
    "", "a", "aab", "abcabc", "hello world", "a(b(c)d)e)", "THE (quick) fox", "  trim  ", "k = v, x=y",
    "x^y$z",
    "%d+", "a.b.c", "0x1F 12 3.5", "aaaaaaaaaa", "()", "[ab]", "a\\000b", "\\255\\254", "one;two;;four",
    "][")
REPLACEMENTS = (
    "''", "'<%0>'", "'%1'", "'%2%1'", "'%%'", "'%x'", "'%'", "'x'", "7", "{a='A', b=false, hello=1}", "{}",
    "nil",
    "function(a, b) return b or a end", "function() end", "function() return {} end", "string.upper",
    "true")
NO_SHAS = (b"f" * 40, b"short", b"", b"g" * 40, b"f" * 41)
LITERALS = tuple(quoted(value).replace("@", "\\064") for value in VALUES)


class Scripts:
    """Draws scripts, and EVAL commands for them; `commands` draws the commands that the scripts call."""

    def __init__(self, commands):
        self.commands = commands
        self.kinds = ([self.call] * 10 + [self.expression] * 8 + [self.value] * 5 + [self.error] * 4
                      + [self.json] * 3 + [self.pack] * 2 + [self.pattern] * 3
                      + [self.library] * 3 + [self.statement] * 3 + [self.lock] * 2)

    def script(self):
        words = self.commands
        return words.one(SETRESP if words.chance(0.25) else ("",)) + words.one(self.kinds)()

    def fill(self, pattern):
        words = self.commands
        while "@" in pattern:
            at = pattern.index("@")
            hole = {"n": NUMBERS, "i": INTEGERS, "s": LITERALS}[pattern[at + 1]]
            pattern = pattern[:at] + words.one(hole) + pattern[at + 2:]
        return pattern

    def expression(self):
        words = self.commands
        filled = self.fill(words.one(EXPRESSIONS))
        forms = ("return {}", "return {}", "return {{{}}}", "local a = {} return a",
                 "return {{pcall(function() return {} end)}}", "return tostring({})")
        shows_address = "redis." in filled or "setmetatable" in filled
        return words.one(forms[:-1] if shows_address else forms).format(filled)

    def value(self):
        return "return " + self.commands.one(NUMBERS + TABLES + TABLES)

    def error(self):
        return self.commands.one(ERRORS)

    def statement(self):
        return self.commands.one(STATEMENTS)

    def literal(self, word, free=True):
        """The Lua text of an argument: a number, a literal, or an element of KEYS or ARGV."""
        words = self.commands
        if free and words.chance(0.15):
            return words.one(("KEYS[1]", "KEYS[2]", "ARGV[1]", "ARGV[2]"))
        if words.chance(0.4) and word.isdigit() and len(word) < 15 and not word.startswith(b"0"):
            return word.decode()
        return quoted(word)

    def called(self):
        words = self.commands
        name, *arguments = words.called()
        free = name.upper() not in TIMED | FILLING | {b"DUMP", b"OBJECT"}  # strings differ in them
        given = [quoted(name)] + [self.literal(argument, free) for argument in arguments]
        return ("redis.call(" if words.chance(0.75) else "redis.pcall(") + ", ".join(given) + ")"

    def call(self):
        words = self.commands
        form = words.one(CALLS)
        if form == "two":
            return self.called() + " " + self.called() + " return " + self.called()
        return form.format(self.called())

    def json(self):
        words = self.commands
        text = words.one(JSON_TEXT)
        return words.one((
            f"return cjson.encode({words.one(JSON_VALUES)})", f"return cjson.decode({text})",
            f"return cjson.encode(cjson.decode({text}))", f"return type(cjson.decode({text}))",
            f"local ok, e = pcall(cjson.decode, {text}) return {{tostring(ok), type(e)}}",
            f"return cjson.{words.one(JSON_CALLS)}()", self.fill(words.one(JSON_SETTINGS))))

    def pattern(self):
        words = self.commands
        pattern = "".join(words.one(PATTERN_ITEMS) + words.one(("", "", "", "*", "+", "-", "?"))
                          for _ in range(words.number(1, 4)))
        text = words.one(SUBJECTS)
        place = words.one(("1", "1", "2", "-1", "-3", "0", "100", "-100"))
        return words.one((
            f"return {{string.find('{text}', '{pattern}')}}",
            f"return {{string.find('{text}', '{pattern}', {place})}}",
            f"return {{string.find('{text}', '{pattern}', {place}, true)}}",
            f"return {{string.match('{text}', '{pattern}', {place})}}",
            f"local r = {{}} for a, b in string.gmatch('{text}', '{pattern}') do r[#r+1] = {{a, b or "
            f"'no'}} "
            "if #r > 20 then break end end return r",
            f"return {{string.gsub('{text}', '{pattern}', {words.one(REPLACEMENTS)})}}",
            f"return {{string.gsub('{text}', '{pattern}', {words.one(REPLACEMENTS)}, {place})}}",
            f"return {{pcall(string.gsub, '{text}', '{pattern}', {words.one(REPLACEMENTS)})}}"))

    def pack(self):
        words = self.commands
        value, packed, limit = words.one(PACK_VALUES), words.one(PACKED), words.number(-1, 3)
        return words.one((
            f"return cmsgpack.pack({value})", f"return cmsgpack.unpack(cmsgpack.pack({value}))",
            f"return {{cmsgpack.unpack({packed})}}", f"return cmsgpack.unpack({packed})",
            f"return {{cmsgpack.unpack_one(cmsgpack.pack({value}), 0)}}", "return cmsgpack.pack()",
            f"return {{cmsgpack.unpack_limit(cmsgpack.pack(1, 2, 3), 2, {limit})}}",
            "return cmsgpack.unpack()"))

    def library(self):
        words = self.commands
        bit = words.chance(0.5)
        called = "bit." + self.fill(words.one(BITS)) if bit else "struct." + words.one(STRUCTS)
        return words.one(("return {}", "return {{{}}}", "return tostring({})")).format(called)

    def lock(self):
        """A script of the kind that lock libraries send."""
        return self.commands.one(LOCKS)

    def keys_and_arguments(self):
        words = self.commands
        if words.chance(0.04):
            return words.one(((b"-1",), (b"5", b"a"), (b"abc",), (), (b"1",), (b"9223372036854775808",),
                              (b"1.5", b"a")))
        keys = words.some(KEYS, 0, 2) if words.chance(0.5) else words.some(KEYS, 1, 2)
        return (b"%d" % len(keys), *keys, *words.some(VALUES + FIELDS[:4], 0, 2))

    def eval(self):
        words = self.commands
        name = words.case(b"EVAL") if words.chance(0.9) else b"EVAL_RO"
        return (name, self.script().encode("latin-1"), *self.keys_and_arguments())

    def by_hash(self, shas):
        """EVALSHA with the hash of an earlier script, an unknown hash, or a text that is not a hash."""
        words = self.commands
        sha = words.one(shas) if shas and words.chance(0.85) else words.one(NO_SHAS)
        if words.chance(0.1):
            sha = sha.upper()
        return (b"EVALSHA" if words.chance(0.9) else b"evalsha_ro", sha, *self.keys_and_arguments())
