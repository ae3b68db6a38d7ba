// The options: a row each with its name, default, range and help, and how a value is read and shown. The
// only place that has them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "io/config/options.h"

namespace holdfast {

enum class Kind {
  kText,
  kLevel,
  kDebug,
  kYesNo,
  kAuth,
  kFsync,
  kSave,
  kEvents,
  kPercentiles,
  kNumber,
  kSize,
  kOctal,
  kPort,
  kSecret,
  kUser
};

// Whether CONFIG SET may change it.
enum class When { kStart, kAnyTime };

using Target = std::variant<std::string Options::*, uint64_t Options::*>;

struct Row {
  const char* group;
  const char* name;
  const char* fallback;
  When when;
  Kind kind;
  Target target;
  uint64_t min;
  uint64_t max;
  const char* help;
};

std::span<const Row> option_rows();
// Null where there is no such option.
const Row* find_row(std::string_view name);

// False if the row does not take this text; then nothing has changed.
bool assign(const Row& row, const std::string& text, Options& options);
// The value as CONFIG GET shows it.
std::string shown(const Row& row, const Options& options);
// Whether the row is a port, and the options say "auto".
bool is_any_port(const Row& row, const Options& options);
// What the row takes, in words.
std::string expected(const Row& row);
// Blank-separated numbers from 0 to 100, or nothing; nullopt: it is something else.
std::optional<std::vector<double>> parse_percentiles(std::string_view text);
// Why it does not take a text, as Redis words it, where it has words for it.
std::string refusal(const Row& row, const std::string& text);

}  // namespace holdfast
