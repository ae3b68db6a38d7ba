// Lua programs over all functions of scripts, with arguments at their limits. Each program ends, stays
// within the memory of scripts, and leaves a host that runs the next one.
#include <array>
#include <string>
#include <vector>

#include "core/engine/engine_parts.h"
#include "fuzz/engines.h"

namespace holdfast::fuzz {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20U;

constexpr std::string_view kNames = R"(
local names = {}
for name, value in pairs(_G) do
  if type(value) == 'function' then names[#names + 1] = name end
  if type(value) == 'table' and name ~= '_G' then
    for inner, f in pairs(value) do
      if type(f) == 'function' then names[#names + 1] = name .. '.' .. inner end
    end
  end
end
table.sort(names)
return names
)";

// Possible arguments, in addition to earlier results, texts and numbers.
const std::array<std::string_view, 27> kValues = {
    "-2^31",
    "2^31-1",
    "-2^31-8",
    "2^32",
    "-2^63",
    "2^63",
    "2^53",
    "1/0",
    "-1/0",
    "0/0",
    "0",
    "-1",
    "0.5",
    "nil",
    "true",
    "{}",
    "{1,2,3}",
    "{[2^31]=1}",
    "{{{{}}}}",
    "string.rep('x',70000)",
    "string.rep('a?',30)..string.rep('a',30)",
    "('a-'):rep(9)..'b'",
    "('a'):rep(300)",
    "'%b()'",
    "'(.-)%1'",
    "function(...) return ... end",
    "coroutine.create(function(a) while true do a=coroutine.yield(a) end end)",
};

// The engine of all runs. Each read of the clock advances it by 2 ms, so that no script runs for long.
class Runner {
 public:
  Runner() : engine_(config()), conn_(engine_.open("127.0.0.1:1", "127.0.0.1:2", time_at(0))) {
    std::string reply = run(kNames);
    for (size_t at = reply.find('$'); at != std::string::npos; at = reply.find('$', at)) {
      const size_t begin = reply.find('\n', at) + 1;
      at = reply.find('\r', begin);
      names_.push_back(reply.substr(begin, at - begin));
    }
  }

  const std::string& name(size_t i) const { return names_[i % names_.size()]; }

  std::string run(std::string_view script) {
    const std::array<std::string_view, 4> argv = {"EVAL", script, "0", "argument"};
    Effects fx;
    engine_.apply(conn_, argv, time_at(0), fx);
    Buffer& out = engine_.output(conn_);
    std::string reply(out.view());
    out.consume(out.size());
    return reply;
  }

  uint64_t script_bytes() { return engine_.state().scripts.memory_bytes(); }

 private:
  static Config config() {
    Config c = engine_config();
    c.limits.script_memory_bytes = 8 * kMiB;
    c.limits.script_run_bytes = kMiB;
    c.limits.busy_reply_ms = 1'000'000;
    c.limits.script_hard_ms = 30;
    c.limits.output_buffer_bytes = 4 * kMiB;
    c.clock_us = [us = int64_t{0}]() mutable { return us += 2000; };
    return c;
  }

  Engine engine_;
  ConnId conn_;
  std::vector<std::string> names_;
};

std::string quoted(std::string_view bytes) {
  std::string text = "'";
  for (const char c : bytes) text += "\\" + std::to_string(static_cast<unsigned char>(c) + 1000).substr(1);
  return text + "'";
}

std::string argument(Source& source, size_t results) {
  switch (source.below(6)) {
    case 0:
      return quoted(source.take(source.below(24)));
    case 1:
      return std::to_string(static_cast<int64_t>(source.number()));
    case 2:
      return results == 0 ? "nil" : "r[" + std::to_string(1 + source.below(results)) + "]";
    default:
      return std::string(kValues[source.below(kValues.size())]);
  }
}

std::string program(Source& source, const Runner& runner) {
  std::string text =
      "local r={} local function try(f,...) local ok,a=pcall(f,...) r[#r+1]=a or false end\n";
  for (size_t i = 0; i < 12 && !source.empty(); ++i) {
    text += "try(" + runner.name(source.byte());
    for (size_t argc = source.below(5); argc > 0; --argc) text += "," + argument(source, i);
    text += ")\n";
  }
  return text + "return r";
}

}  // namespace

void fuzz_scripts(std::string_view bytes) {
  static Runner runner;
  Source source(bytes);
  const std::string text = program(source, runner);
  const std::string reply = runner.run(text);
  must(!reply.empty(), text);
  must(runner.script_bytes() <= 8 * kMiB, text);
  must(runner.run("return 1") == ":1\r\n", text);
}

}  // namespace holdfast::fuzz
