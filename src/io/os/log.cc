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
#include <memory>

#include "core/events/request_text.h"
#include "io/os/line_limit.h"

namespace holdfast {
namespace {

constexpr std::array<spdlog::level::level_enum, 4> kSpdlogLevels{spdlog::level::trace, spdlog::level::debug,
                                                                 spdlog::level::info, spdlog::level::warn};
constexpr std::array<std::string_view, 4> kLevelNames{"debug", "verbose", "notice", "warning"};

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
  spdlog::logger logger{"holdfast", std::make_shared<spdlog::sinks::stdout_sink_st>()};

  Log() { use_format(); }
  void use_format() {
    auto formatter = std::make_unique<spdlog::pattern_formatter>();
    formatter->add_flag<LevelName>('*').set_pattern("%Y-%m-%d %H:%M:%S.%e %* %v");
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

}  // namespace

Result<Done> open_log(LogLevel level, const std::string& file) {
  the_log().logger.set_level(to_spdlog(level));
  return file.empty() ? Result<Done>(Done{}) : use_file(file);
}

void set_log_level(LogLevel level) { the_log().logger.set_level(to_spdlog(level)); }

void reopen_log() {
  const std::string file = the_log().file;
  if (file.empty()) return;
  if (Result<Done> opened = use_file(file); !opened) log_line(LogLevel::kWarning, opened.error());
}

bool logs(LogLevel level) { return the_log().logger.should_log(to_spdlog(level)); }

void log_line(LogLevel level, std::string_view line) { the_log().logger.log(to_spdlog(level), line); }

std::string one_line(std::string_view text) {
  std::string line = cut_text(text, LineLimit::kBytes);
  std::ranges::replace_if(
      line, [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; }, '?');
  return line;
}

void log_script_line(LogLevel level, std::string_view text) {
  static LineLimit limit;
  if (!logs(level)) return;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const auto verdict = limit.take(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
  if (verdict == LineLimit::Verdict::kLeaveOut) return;
  if (verdict == LineLimit::Verdict::kWriteNotice) {
    return log_line(level, fmt::format("script: more than {} lines in one second; the rest is dropped",
                                       LineLimit::kLines));
  }
  if (const uint64_t left_out = limit.take_left_out(); left_out > 0)
    log_line(level, fmt::format("script: {} lines were dropped", left_out));
  log_line(level, fmt::format("script: {}", one_line(text)));
}

}  // namespace holdfast
