// The options that several verbs share: how words are read, and what servers, times and locks they name.
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

// 10 years. The clocks of the standard library count in nanoseconds, which do not hold the longest TTL.
inline constexpr milliseconds kLongestDuration{std::chrono::hours(10 * 365 * 24)};

// A lock as it was asked for.
struct LockWish {
  std::string name;
  Mode mode = Mode::kExclusiveLock;
  uint32_t limit = 1;
  milliseconds ttl{30000};
  // nullopt: for ever. 0: do not wait.
  std::optional<milliseconds> wait;
  uint32_t max_attempts = 0;  // 0: no limit
  std::optional<RetryBackoff> backoff;
  bool quiet = false;  // says nothing of a wait
  int busy_status = 75;
};

// All values are texts.
using Given = boost::program_options::variables_map;

// Throws std::invalid_argument, which says what is wrong in the words.
[[noreturn]] void refuse(const std::string& why);

// `options`: their names, separated by blanks, as in "ttl= wait,w= shared": with = those that have a value,
// behind a comma a letter. Throws std::exception, whose text is for people.
Given read_words(const std::vector<std::string>& words, std::string_view options);
// The words that are no options.
std::vector<std::string> arguments_of(const Given& given);

// These throw as refuse() does.
// An argument must not be empty, as from a variable that is not set; `what` names it.
void refuse_empty(const std::string& argument, std::string_view what);
milliseconds duration_of(const Given& given, const char* option, milliseconds fallback,
                         milliseconds longest = kLongestDuration);
int64_t number_of(const Given& given, const char* option, int64_t low, int64_t high, int64_t fallback);
// --ttl, --wait, --no-wait, --shared, --limit, --attempts, --backoff and --quiet.
void read_lock_options(const Given& given, LockWish& wish);

// What servers_of() and with_login() read, as read_words() takes it.
inline constexpr std::string_view kServerOptions = "servers= user= password-file= tls cacert= cert= key=";
inline constexpr std::string_view kServerHelp =
    "  --servers WHERE     HOST:PORT, or a quorum of several: HOST:PORT,HOST:PORT,...; on Redis\n"
    "                      redis://HOST:PORT, or redis-cluster://HOST:PORT,HOST:PORT,...\n"
    "                      (default: the variable HOLDFAST_SERVERS, else 127.0.0.1:7379)\n"
    "  --user NAME         the user to log in as (the variable HOLDFAST_USER, else the user default)\n"
    "  --password-file F   the password is the first line of F, of standard input if F is -\n"
    "                      (the variable HOLDFAST_PASSWORD, else none)\n"
    "  --tls               over TLS, as with holdfasts://, rediss:// and rediss-cluster://\n"
    "  --cacert FILE       the authority that the servers' certificates are from (those of the system)\n"
    "  --cert FILE         a certificate of this client, where the servers want one\n"
    "  --key FILE          its key\n";

// --servers, else the variable HOLDFAST_SERVERS, else the server of this machine; with what --tls and its
// like say as settings behind it. An embedded engine is refused.
std::string servers_of(const Given& given);

// The address with one more setting behind it.
std::string with_setting(const std::string& servers, const char* name, const std::string& value);

// Of the options that run and lock have for a wait where no queue can be had.
inline constexpr std::string_view kRetryHelp =
    "  --attempts N        give up after N attempts, where no queue can be had (no limit)\n"
    "  --backoff A[,F[,M]] then pause up to A after the first attempt, F times (2) as long after each\n"
    "                      further one, at most M (10s), each pause random (10ms to 100ms)\n"
    "  -q, --quiet         do not report while waiting: neither the holder of the lock, nor servers that\n"
    "                      cannot be reached\n";

// "30s", "500ms", "2m", "1h", "0.5": seconds, unless a unit is given. Of fractions of a millisecond a whole
// one is made. What is longer than any limit becomes 9.2e18 ms; nullopt: not a duration.
std::optional<milliseconds> parse_duration(const std::string& text);

}  // namespace holdfast
