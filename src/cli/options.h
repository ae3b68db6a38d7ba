// The options that several verbs share: parses arguments, servers, durations and lock options.
#pragma once

#include <boost/program_options/variables_map.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/client.h"

namespace holdfast {

// 10 years. The clocks of the standard library count in nanoseconds, which overflow at the longest TTL.
inline constexpr milliseconds kLongestDuration{std::chrono::hours(10 * 365 * 24)};

// The requested lock: the options of `run`, `elect` and `lock`.
struct LockSettings {
  std::string name;
  Mode mode = Mode::kExclusiveLock;
  uint32_t limit = 1;
  milliseconds ttl{30000};
  // How long to wait; nullopt: without a limit, 0: do not wait.
  std::optional<milliseconds> wait;
  uint32_t max_attempts = 0;  // 0: no limit
  std::optional<RetryBackoff> backoff;
  bool quiet = false;  // no reports while waiting
  std::string note;    // see LockOptions
  int busy_status = 75;
};

// The parsed options. All values are texts.
using Given = boost::program_options::variables_map;

// Throws std::invalid_argument with the text `why`: the mistake in the arguments.
[[noreturn]] void refuse(const std::string& why);

// Parses `words`. `options` has the known names, separated by blanks, as in "ttl= wait,w= shared". A
// trailing = marks an option with a value; a letter behind a comma is its short form. Throws a
// std::exception whose text is for people.
Given read_words(const std::vector<std::string>& words, std::string_view options);
// Returns the words that are not options.
std::vector<std::string> arguments_of(const Given& given);

// These throw as refuse() does.
// Rejects an empty argument, which often comes from a variable that is not set. `what` is its name.
void refuse_empty(const std::string& argument, std::string_view what);
milliseconds duration_of(const Given& given, const char* option, milliseconds fallback,
                         milliseconds longest = kLongestDuration);
int64_t number_of(const Given& given, const char* option, int64_t low, int64_t high, int64_t fallback);
// Reads --ttl, --wait, --no-wait, --shared, --limit, --attempts, --backoff, --note and --quiet into `lock`.
void read_lock_options(const Given& given, LockSettings& lock);

// The options that servers_of() and with_login() read, in the form of read_words().
inline constexpr std::string_view kServerOptions = "servers= user= password-file= tls cacert= cert= key=";
inline constexpr std::string_view kServerHelp =
    "  --servers WHERE     HOST:PORT, or a quorum of several: HOST:PORT,HOST:PORT,...; on Redis\n"
    "                      redis://HOST:PORT, or redis-cluster://HOST:PORT,HOST:PORT,...\n"
    "                      (default: the variable HOLDFAST_SERVERS, else 127.0.0.1:7379)\n"
    "  --user NAME         the user to log in as (the variable HOLDFAST_USER, else the user default)\n"
    "  --password-file F   the password is the first line of F, of standard input if F is -\n"
    "                      (the variable HOLDFAST_PASSWORD, else none)\n"
    "  --tls               over TLS, as with holdfasts://, rediss:// and rediss-cluster://\n"
    "  --cacert FILE       the authority of the servers' certificates (the system's authorities)\n"
    "  --cert FILE         a certificate of this client, if the servers require one\n"
    "  --key FILE          its key\n";

// Returns the address from --servers, else from the variable HOLDFAST_SERVERS, else that of this machine.
// Appends --tls, --cacert, --cert and --key as settings. Rejects an embedded engine.
std::string servers_of(const Given& given);

// Returns the address with one more setting appended.
std::string with_setting(const std::string& servers, const char* name, const std::string& value);

// The options of run and lock that control a wait.
inline constexpr std::string_view kRetryHelp =
    "  --attempts N        stop after N attempts, if the servers have no queue (no limit)\n"
    "  --backoff A[,F[,M]] the random pause between such attempts: up to A after the first one, F times\n"
    "                      (2) as long after each further one, at most M (10s); default: 10ms to 100ms\n"
    "  -q, --quiet         do not report while waiting: neither the holder of the lock, nor servers that\n"
    "                      cannot be reached\n";

// Parses "30s", "500ms", "2m", "1h" or "0.5"; without a unit the number is in seconds. Rounds up to whole
// milliseconds. A value beyond any limit becomes 9.2e18 ms. Returns nullopt if the text is not a duration.
std::optional<milliseconds> parse_duration(const std::string& text);

}  // namespace holdfast
