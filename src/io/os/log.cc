// Implements the log with spdlog. Single-threaded: only the loop's thread writes.
#include "io/os/log.h"

#include <fmt/format.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>

#include "core/base/config.h"
#include "core/events/request_text.h"
#include "io/os/json_text.h"
#include "io/os/line_limit.h"

namespace holdfast {
namespace {

constexpr std::array<spdlog::level::level_enum, 4> kSpdlogLevels{spdlog::level::trace, spdlog::level::debug,
                                                                 spdlog::level::info, spdlog::level::warn};
constexpr std::array<std::string_view, 4> kLevelNames{"debug", "verbose", "notice", "warning"};
constexpr std::array<std::string_view, 4> kPriorities{"<7>", "<6>", "<5>", "<4>"};  // of syslog(3)

// Writes a level by its name in Redis, which spdlog does not know.
class LevelName : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
    const size_t level = static_cast<size_t>(message.level);
    const std::string_view name = level < kLevelNames.size() ? kLevelNames[level] : "error";
    out.append(name.data(), name.data() + name.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<LevelName>(); }
};

struct Log {
  std::string file;
  LogFormat format = LogFormat::kText;
  spdlog::logger logger{"holdfast", std::make_shared<spdlog::sinks::stdout_sink_st>()};

  Log() { use_format(); }
  void use_format() {
    auto formatter = std::make_unique<spdlog::pattern_formatter>();
    const bool text = format == LogFormat::kText;  // a line of another format comes complete
    formatter->add_flag<LevelName>('*').set_pattern(text ? "%Y-%m-%d %H:%M:%S.%e %* %v" : "%v");
    logger.set_formatter(std::move(formatter));
    logger.flush_on(spdlog::level::trace);
  }
};

Log& the_log() {
  static Log log;
  return log;
}

Result<Done> use_file(const std::string& file) {
  // Checked first, because the library would create missing folders, and a misspelt path must be an error.
  if (std::FILE* probe = std::fopen(file.c_str(), "ae"); probe != nullptr) {
    std::fclose(probe);
  } else {
    return Failure{fmt::format("cannot write the log {}: {}; check --logfile", file, std::strerror(errno))};
  }
  try {
    the_log().logger.sinks().assign(1, std::make_shared<spdlog::sinks::basic_file_sink_st>(file));
  } catch (const spdlog::spdlog_ex& e) {
    return Failure{fmt::format("cannot write the log: {}; check --logfile", e.what())};
  }
  the_log().file = file;
  the_log().use_format();
  return Done{};
}

spdlog::level::level_enum to_spdlog(LogLevel level) { return kSpdlogLevels[static_cast<size_t>(level)]; }

// Returns the present time as RFC 3339 in UTC, as in 2026-11-23T20:28:41.123Z.
std::string time_text() {
  using std::chrono::milliseconds;
  const auto now = std::chrono::system_clock::now();
  const auto ms = std::chrono::duration_cast<milliseconds>(now.time_since_epoch()).count() % 1000;
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  return fmt::format("{}.{:03}Z", text.data(), ms);
}

std::string json_line(LogLevel level, std::string_view line, LogFields fields) {
  std::string json = fmt::format(R"({{"time":"{}","level":"{}","message":)", time_text(),
                                 kLevelNames[static_cast<size_t>(level)]);
  append_json_string(json, line);
  for (const LogField& field : fields) {
    json += ',';
    append_json_string(json, field.name);
    json += ':';
    if (field.is_number) {
      json += std::to_string(field.number);
    } else {
      append_json_string(json, field.text);
    }
  }
  return json += '}';
}

// Returns the line in the format of the log. That of kText lacks its time and level.
std::string formatted(LogLevel level, std::string_view line, LogFields fields) {
  if (the_log().format == LogFormat::kJson) return json_line(level, line, fields);
  if (the_log().format == LogFormat::kText) return std::string(line);
  return fmt::format("{}{}", kPriorities[static_cast<size_t>(level)], line);
}

int64_t steady_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

std::string quoted_text(std::string_view text) {
  std::string out;
  append_quoted(out, text);
  return out;
}

}  // namespace

Result<Done> open_log(LogLevel level, const std::string& file) {
  the_log().logger.set_level(to_spdlog(level));
  return file.empty() ? Result<Done>(Done{}) : use_file(file);
}

void set_log_level(LogLevel level) { the_log().logger.set_level(to_spdlog(level)); }

void reopen_log() {
  const std::string file = the_log().file;
  if (file.empty()) return;
  if (Result<Done> opened = use_file(file); !opened) {
    log_line(LogLevel::kWarning, fmt::format("{}; the old log file stays in use", opened.error()));
  }
}

bool logs(LogLevel level) { return the_log().logger.should_log(to_spdlog(level)); }

void set_log_format(LogFormat format) {
  the_log().format = format;
  the_log().use_format();
}

void log_line(LogLevel level, std::string_view line, LogFields fields) {
  if (!logs(level)) return;
  the_log().logger.log(to_spdlog(level), formatted(level, line, fields));
}

bool may_log(LineLimit& limit, LogLevel level, std::string_view what) {
  const auto verdict = limit.take(steady_ms());
  if (verdict == LineLimit::Verdict::kLeaveOut) return false;
  if (verdict == LineLimit::Verdict::kWriteNotice) {
    log_line(level, fmt::format("{}: more than {} lines in one second; the rest is dropped", what,
                                LineLimit::kLines));
    return false;
  }
  if (const uint64_t left_out = limit.take_left_out(); left_out > 0)
    log_line(level, fmt::format("{}: {} lines were dropped", what, left_out), {{"dropped", left_out}});
  return true;
}

void print_start_failure(std::string_view line) {
  const bool is_json = the_log().format == LogFormat::kJson;
  fmt::print(stderr, "{}\n",
             formatted(LogLevel::kWarning, is_json ? std::string(line) : one_line(line), {}));
}

std::string one_line(std::string_view text) {
  std::string line = cut_text(text, LineLimit::kBytes);
  std::ranges::replace_if(
      line, [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  return line;
}

void log_script_line(LogLevel level, std::string_view text) {
  static LineLimit limit;
  if (!logs(level) || !may_log(limit, level, "script")) return;
  log_line(level, fmt::format("script: {}", one_line(text)));
}

void log_slow_wait(const SlowWait& wait) {
  static LineLimit limit;
  if (!logs(LogLevel::kNotice) || !may_log(limit, LogLevel::kNotice, "slow wait")) return;
  const std::string key = cut_text(wait.key, kShownBytes);
  const std::string owner = cut_text(wait.owner, kShownBytes);
  const std::string holder = cut_text(wait.holder, kShownBytes);
  const std::string_view granted = wait.granted ? "yes" : "no";
  const std::string line =
      fmt::format("slow wait: db={} key={} owner={} holder={} waited_ms={} granted={}", wait.db,
                  quoted_text(key), quoted_text(owner), quoted_text(holder), wait.waited_ms, granted);
  log_line(LogLevel::kNotice, line,
           {{"db", wait.db},
            {"key", key},
            {"owner", owner},
            {"holder", holder},
            {"waited_ms", wait.waited_ms},
            {"granted", granted}});
}

}  // namespace holdfast
