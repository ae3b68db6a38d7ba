// The table of options: each row has a name, default, range and help. Also how a value is read and shown.
// No other place has them.
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
  kPath,
  kLevel,
  kLogFormat,
  kDebug,
  kYesNo,
  kAuth,
  kFsync,
  kSave,
  kBusyPoll,
  kEvents,
  kPercentiles,
  kNumber,
  kNumberOrOff,  // -1: off, stored as kSwitchedOff
  kSize,
  kOctal,
  kPort,
  kSecret,
  kUser
};

// The stored value of an option that is off.
inline constexpr uint64_t kSwitchedOff = UINT64_MAX;

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

// A renamed option. The server accepts the old name in every place where it accepts the name.
struct Alias {
  const char* old_name;
  const char* name;
};

// The rows of all programs, for their defaults.
std::span<const Row> all_option_rows();
// The rows of this program: see programs.h.
std::span<const Row> option_rows();
std::span<const Alias> option_aliases();
// Finds an option by its name or by an old name. Returns null if there is no such option.
const Row* find_row(std::string_view name);

// Whether no error and no log line may show the value.
bool is_secret(const Row& row);
// Whether the option takes several words, each of which is an address.
bool is_address_list(const Row& row);
// Returns the words that are the only valid values; none if the option takes other values.
std::span<const std::string_view> choices(const Row& row);
// Returns the one value that several values of the option make, in the order given. For most options it is
// the last one.
std::string combined(const Row& row, std::vector<std::string> values);

// Parses `text` and stores the value. Returns false if the text is not valid; then the options are
// unchanged.
bool assign(const Row& row, const std::string& text, Options& options);
// Returns the value as CONFIG GET shows it.
std::string shown(const Row& row, const Options& options);
// Whether the row is a port and its value is "auto".
bool is_any_port(const Row& row, const Options& options);
// Describes the valid values in words.
std::string expected(const Row& row);
// Parses blank-separated numbers from 0 to 100; the text may be empty. Returns nullopt for any other text.
std::optional<std::vector<double>> parse_percentiles(std::string_view text);
// Returns why the row rejects `text`. Uses Redis's words if Redis has words for it.
std::string refusal(const Row& row, const std::string& text);

}  // namespace holdfast
