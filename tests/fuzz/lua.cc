// The libraries that get bytes from scripts. A value that they unpack must also pack, and unpack to the
// same value.
#include <array>
#include <string>
#include <vector>

#include "core/engine/engine.h"
#include "fuzz/engines.h"

namespace holdfast::fuzz {
namespace {

// Shows the types and bytes of a value; cmsgpack packs at most 16 levels.
constexpr std::string_view kShow = R"(
local function show(v, depth)
  if type(v) ~= 'table' then return type(v) .. ':' .. tostring(v) end
  if depth > 14 then return '...' end
  local parts = {}
  for k, x in pairs(v) do parts[#parts + 1] = show(k, depth + 1) .. '=' .. show(x, depth + 1) end
  table.sort(parts)
  return '{' .. table.concat(parts, ',') .. '}'
end
)";

// Each returns 'no' if the bytes are rejected, 'same' if the values are equal.
const std::array<std::string_view, 5> kScripts = {
    R"(local good, v = pcall(cmsgpack.unpack, ARGV[2])
if not good then return 'no' end
local packed = cmsgpack.pack(v)
local able, again = pcall(cmsgpack.unpack, packed)
-- As in Redis, what is nested too deep is packed as nil, which no key may be.
if not able and string.find(again, 'index is nil') then return 'no' end
if show(again, 0) == show(v, 0) then return 'same' end
return 'differs')",
    R"(local good, v = pcall(cjson.decode, ARGV[2])
if not good then return 'no' end
local able, text = pcall(cjson.encode, v)
if not able then return 'no' end
cjson.decode(text)
return 'same')",
    R"(local all = {pcall(struct.unpack, ARGV[1], ARGV[2])}
if not all[1] then return 'no' end
local at = table.remove(all)
local size, bytes = pcall(struct.size, ARGV[1])
table.remove(all, 1)
local able, packed = pcall(struct.pack, ARGV[1], unpack(all))
if not able then return 'no' end
local again = {pcall(struct.unpack, ARGV[1], packed)}
if not again[1] then return 'differs' end
return 'same')",
    R"(pcall(cmsgpack.unpack_one, ARGV[2], tonumber(ARGV[1]))
pcall(cmsgpack.unpack_limit, ARGV[2], tonumber(ARGV[1]), 1)
return 'same')",
    R"(local a, b = tonumber(ARGV[1]) or 0, tonumber(ARGV[2]) or 0
bit.tohex(a, b) bit.rol(a, b) bit.lshift(a, b) bit.arshift(a, b) bit.bswap(a)
if bit.bxor(bit.bxor(a, b), b) ~= bit.tobit(a) then return 'differs' end
return 'same')",
};

// One engine for all runs, since a script leaves no state.
std::string run(std::string_view script, std::string_view first, std::string_view second) {
  static Engine engine(engine_config());
  static const ConnId conn = engine.open("127.0.0.1:1", "127.0.0.1:2", time_at(0));
  const std::string text = std::string(kShow) + std::string(script);
  const std::array<std::string_view, 5> argv = {"EVAL", text, "0", first, second};
  Effects fx;
  engine.apply(conn, argv, time_at(0), fx);
  Buffer& out = engine.output(conn);
  std::string reply(out.view());
  out.consume(out.size());
  return reply;
}

}  // namespace

void fuzz_lua(std::string_view bytes) {
  Source source(bytes);
  const size_t script = source.below(kScripts.size());
  const std::string_view first = source.text();
  const std::string reply = run(kScripts[script], first, source.rest());
  const bool good = reply == "$4\r\nsame\r\n" || reply == "$2\r\nno\r\n";
  must(good || reply.find("memory") != std::string::npos, reply);
}

}  // namespace holdfast::fuzz
