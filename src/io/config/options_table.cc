// The table of options, and the kinds of their values. Sizes as in Redis: k, m and g are powers of 1000;
// kb, mb and gb are powers of 1024.
#include "io/config/options_table.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>

#include "core/base/event_flags.h"

namespace holdfast {
namespace {

constexpr uint64_t kMaxU64 = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kMaxI32 = std::numeric_limits<int32_t>::max();
// The token lead is counted in microseconds, and a token has 53 bits.
constexpr uint64_t kMaxLeadMs = kMaxToken / 1000;

using O = Options;

// clang-format off: keeps the columns of the table
const std::array kRows{
    Row{"Network", "port", "7379", When::kStart, Kind::kPort, &O::port, 0, 65535,
        "TCP port; 0: no TCP; auto: any free port, named by the ready line in the log"},
    Row{"Network", "bind", "127.0.0.1 -::1", When::kStart, Kind::kText, &O::bind, 0, 0,
        "addresses to listen on, repeated or separated by blanks; \"-\" before an address: the machine "
        "need not have it; \"*\" and \"::*\": all addresses of IPv4 and of IPv6"},
    Row{"Network", "unixsocket", "", When::kStart, Kind::kPath, &O::unixsocket, 0, 0,
        "path of a Unix socket to listen on, in addition to TCP"},
    Row{"Network", "unixsocketperm", "0", When::kStart, Kind::kOctal, &O::unixsocketperm, 0, 0777,
        "permissions of the Unix socket, octal; 0: the umask decides"},
    Row{"Network", "tcp-backlog", "511", When::kStart, Kind::kNumber, &O::tcp_backlog, 1, 65535,
        "connections that may wait for accept"},
    Row{"Network", "tcp-keepalive", "300", When::kStart, Kind::kNumber, &O::tcp_keepalive_s, 0, 32767,
        "seconds of silence after which the server probes the peer; 0: never"},
    Row{"Network", "timeout", "0", When::kAnyTime, Kind::kNumber, &O::idle_timeout_s, 0, kMaxI32,
        "seconds after which the server closes an idle client, unless the client waits for a lock, has "
        "subscribed or monitors; 0: never"},
    Row{"Network", "busy-poll", "auto", When::kAnyTime, Kind::kBusyPoll, &O::busy_poll, 0, 1000000,
        "whether the server polls for the next request before it sleeps, which saves the time of a "
        "wake-up: auto: for at most 50 us, while that pays and no other thread wants the core; no or 0: "
        "never; a number: always, for so many microseconds, which uses up to a whole core"},

    Row{"TLS", "tls-port", "0", When::kStart, Kind::kPort, &O::tls_port, 0, 65535,
        "TCP port for TLS, at the addresses of bind; 0: none; auto: any free port. With port 0 it is the "
        "only port"},
    Row{"TLS", "tls-cert-file", "", When::kAnyTime, Kind::kPath, &O::tls_cert_file, 0, 0,
        "the server's certificate in PEM, followed by the certificates of its issuers; CONFIG SET of a "
        "TLS file reloads all TLS files"},
    Row{"TLS", "tls-key-file", "", When::kAnyTime, Kind::kPath, &O::tls_key_file, 0, 0,
        "key of the certificate, in PEM"},
    Row{"TLS", "tls-key-file-pass", "", When::kAnyTime, Kind::kSecret, &O::tls_key_pass, 0, 0,
        "passphrase of an encrypted key"},
    Row{"TLS", "tls-ca-cert-file", "", When::kAnyTime, Kind::kPath, &O::tls_ca_file, 0, 0,
        "authorities in PEM; the server accepts the clients that they certify"},
    Row{"TLS", "tls-ca-cert-dir", "", When::kAnyTime, Kind::kPath, &O::tls_ca_dir, 0, 0,
        "folder of such files, named as \"openssl rehash\" names them"},
    Row{"TLS", "tls-auth-clients", "yes", When::kAnyTime, Kind::kAuth, &O::tls_auth_clients, 0, 0,
        "whether a client must have a certificate: yes; no; or optional: the server checks a certificate "
        "only if the client sends one"},
    Row{"TLS", "tls-protocols", "", When::kAnyTime, Kind::kText, &O::tls_protocols, 0, 0,
        "TLSv1.2, TLSv1.3 or both; empty: both"},
    Row{"TLS", "tls-ciphers", "", When::kAnyTime, Kind::kText, &O::tls_ciphers, 0, 0,
        "ciphers of TLS 1.2, as OpenSSL names them; empty: OpenSSL's default"},
    Row{"TLS", "tls-ciphersuites", "", When::kAnyTime, Kind::kText, &O::tls_ciphersuites, 0, 0,
        "ciphers of TLS 1.3, as OpenSSL names them; empty: OpenSSL's default"},
    Row{"TLS", "tls-prefer-server-ciphers", "no", When::kAnyTime, Kind::kYesNo,
        &O::tls_prefer_server_ciphers, 0, 0,
        "yes: the server's order of ciphers decides; no: the client's order decides"},
    Row{"TLS", "tls-handshake-timeout", "10", When::kAnyTime, Kind::kNumber, &O::tls_handshake_s, 1, 3600,
        "seconds after which the server closes an unfinished handshake"},

    Row{"HTTP", "http-port", "0", When::kStart, Kind::kPort, &O::http_port, 0, 65535,
        "TCP port of the HTTP door: probes, metrics, JSON and the dashboard; 0: none; auto: any free port"},
    Row{"HTTP", "http-bind", "", When::kStart, Kind::kText, &O::http_bind, 0, 0,
        "addresses of the HTTP door, as for bind; empty: those of bind"},
    Row{"HTTP", "http-max-clients", "64", When::kStart, Kind::kNumber, &O::http_max_clients, 1, 10000,
        "HTTP connections at once; they do not count for maxclients"},
    Row{"HTTP", "http-tls", "no", When::kStart, Kind::kYesNo, &O::http_tls, 0, 0,
        "whether the HTTP door uses TLS, with the files and settings of tls-port"},

    Row{"Security", "requirepass", "", When::kAnyTime, Kind::kSecret, &O::requirepass, 0, 0,
        "password of the user \"default\", used when no user is named; empty: none"},
    Row{"Security", "user", "", When::kStart, Kind::kUser, &O::users, 0, 0,
        "a user with its ACL rules, such as \"alice on >password ~jobs:* +@lock\"; may be repeated"},
    Row{"Security", "aclfile", "", When::kStart, Kind::kPath, &O::aclfile, 0, 0,
        "file of the users, for ACL LOAD and ACL SAVE, in place of the option user"},
    Row{"Security", "acllog-max-len", "128", When::kAnyTime, Kind::kNumber, &O::acl_log_entries, 0, kMaxI32,
        "rejections that ACL LOG keeps"},
    Row{"Security", "protected-mode", "yes", When::kAnyTime, Kind::kYesNo, &O::protected_mode, 0, 0,
        "whether a server without a password accepts connections from its own machine only"},

    Row{"Limits", "maxclients", "10000", When::kAnyTime, Kind::kNumber, &O::maxclients, 1, kMaxClients,
        "connections at once"},
    Row{"Limits", "proto-max-bulk-len", "512mb", When::kAnyTime, Kind::kSize, &O::bulk_bytes, 1U << 20U,
        kMaxI32, "size of one argument"},
    Row{"Limits", "max-arguments", "1048576", When::kStart, Kind::kNumber, &O::arguments, 1, kMaxI32,
        "arguments of one command"},
    Row{"Limits", "max-inline-size", "64kb", When::kStart, Kind::kSize, &O::inline_bytes, 32, kMaxI32,
        "size of a command typed as a line"},
    Row{"Limits", "client-query-buffer-limit", "1gb", When::kAnyTime, Kind::kSize, &O::query_buffer_bytes,
        1U << 20U, kMaxU64, "unprocessed input of one client; the server closes a client that exceeds it"},
    Row{"Limits", "client-output-buffer-limit", "256mb", When::kAnyTime, Kind::kSize,
        &O::output_buffer_bytes, 0, kMaxU64,
        "unread replies of one client; the server closes a client that exceeds it; 0: no limit"},
    Row{"Limits", "client-output-buffer-limit-pubsub", "32mb", When::kAnyTime, Kind::kSize,
        &O::pubsub_output_bytes, 0, kMaxU64,
        "unread messages of one subscriber; the server closes a subscriber that exceeds it; 0: no limit"},
    Row{"Limits", "tracking-table-max-keys", "1000000", When::kAnyTime, Kind::kNumber, &O::tracking_keys, 0,
        kMaxU64, "keys remembered for CLIENT TRACKING; 0: no limit"},
    Row{"Limits", "max-pubsub-patterns", "1000", When::kAnyTime, Kind::kNumber, &O::patterns, 0, kMaxI32,
        "different patterns of PSUBSCRIBE, of all clients together"},
    Row{"Limits", "maxmemory", "0", When::kAnyTime, Kind::kSize, &O::memory_bytes, 0, kMaxU64,
        "memory beyond which the server rejects commands that need more; 0: no limit"},

    Row{"Locks", "max-waiters", "1000000", When::kAnyTime, Kind::kNumber, &O::max_waiters, 0, kMaxI32,
        "waiting requests in all"},
    Row{"Locks", "max-waiters-per-key", "100000", When::kAnyTime, Kind::kNumber, &O::max_waiters_per_key, 0,
        kMaxI32, "waiting requests of one key"},
    Row{"Locks", "max-owner-size", "512", When::kAnyTime, Kind::kSize, &O::max_owner_bytes, 1, 65535,
        "bytes of an owner's name"},
    Row{"Locks", "max-ended-leases", "100000", When::kStart, Kind::kNumber, &O::max_ended_leases, 0,
        kMaxI32, "ended leases whose outcome the server remembers"},
    Row{"Locks", "history-max", "10000", When::kAnyTime, Kind::kNumber, &O::history_events, 0, 100000,
        "events of locks that LOCKS HISTORY shows; 0: none"},
    Row{"Locks", "max-token-lead", "86400000", When::kAnyTime, Kind::kNumber, &O::max_token_lead_ms, 0,
        kMaxLeadMs,
        "milliseconds by which a client may move a fencing token of its keys ahead of the clock"},
    Row{"Locks", "session-grace", "0", When::kAnyTime, Kind::kNumber, &O::session_grace_ms, 0, kMaxTtlMs,
        "milliseconds for which a SESSION lock outlives its connection"},

    Row{"Proxy", "servers", "", When::kStart, Kind::kText, &O::servers, 0, 0,
        "the servers whose majority decides, as in a:7379,b:7379,c:7379. Over TLS: "
        "a,b,c?tls=yes&cacert=FILE. User and password: HOLDFAST_USER and HOLDFAST_PASSWORD"},
    Row{"Proxy", "server-timeout", "400", When::kStart, Kind::kNumber, &O::server_timeout_ms, 10, 60000,
        "milliseconds after which a server that has not answered counts as unreachable; a request without "
        "WAIT is answered soon after that"},
    Row{"Proxy", "untimed-ttl", "86400000", When::kStart, Kind::kNumber, &O::untimed_ttl_ms, 1000,
        kMaxTtlMs,
        "milliseconds for which the servers keep a lock that a client acquired without a TTL; nothing "
        "renews it"},

    Row{"Disk", "dir", "", When::kStart, Kind::kPath, &O::dir, 0, 0,
        "data folder; the server makes it if it is missing; empty: no data outlives the process"},
    Row{"Disk", "appendonly", "yes", When::kStart, Kind::kYesNo, &O::appendonly, 0, 0,
        "whether the server writes each change to the journal before it replies"},
    Row{"Disk", "appendfsync", "everysec", When::kAnyTime, Kind::kFsync, &O::appendfsync, 0, 0,
        "when the server syncs the journal to the disk: always: before the reply; everysec: every "
        "fsync-interval; no: when the system does"},
    Row{"Disk", "fsync-interval", "1000", When::kStart, Kind::kNumber, &O::fsync_interval_ms, 1, kMaxI32,
        "milliseconds between two syncs with everysec"},
    Row{"Disk", "journal-max-size", "256mb", When::kAnyTime, Kind::kSize, &O::journal_max, 0, kMaxU64,
        "size of the journal at which a snapshot replaces it; 0: no limit"},
    Row{"Disk", "save", "3600 1 300 100 60 10000", When::kAnyTime, Kind::kSave, &O::save, 0, 0,
        "pairs of seconds and changes: a snapshot after that many seconds, if there were that many "
        "changes; empty: none"},
    Row{"Disk", "write-threshold", "0", When::kAnyTime, Kind::kNumber, &O::write_threshold, 0, kMaxU64,
        "a snapshot after that many changes; 0: none"},
    Row{"Disk", "autosave", "0", When::kAnyTime, Kind::kNumber, &O::autosave_ms, 0, kMaxI32,
        "milliseconds between two snapshots, if there were changes; 0: none"},
    Row{"Disk", "compress", "yes", When::kAnyTime, Kind::kYesNo, &O::compress, 0, 0,
        "whether the snapshot is compressed with gzip: dump.rdb.gz, not dump.rdb"},
    Row{"Disk", "compress-level", "1", When::kAnyTime, Kind::kNumber, &O::compress_level, 1, 3,
        "1 is the fastest, 3 the smallest"},
    Row{"Disk", "skip-unsupported-types", "no", When::kStart, Kind::kYesNo, &O::skip_unknown, 0, 0,
        "yes: the server skips unsupported types in a Redis snapshot; no: it refuses to start"},
    Row{"Disk", "recovery-wait", "60000", When::kAnyTime, Kind::kNumber, &O::recovery_wait_ms, 0, kMaxI32,
        "longest time in milliseconds without grants after a stop that may have lost locks; 0: off"},

    Row{"Data", "notify-keyspace-events", "", When::kAnyTime, Kind::kEvents, &O::notify_events, 0, 0,
        "keyspace events that the server publishes: K E g $ l s h z x n m A, as in Redis"},
    Row{"Data", "hash-max-listpack-entries", "512", When::kAnyTime, Kind::kNumber, &O::hash_packed_entries,
        0, kMaxI32, "fields of a hash that the server stores packed"},
    Row{"Data", "hash-max-listpack-value", "64", When::kAnyTime, Kind::kNumber, &O::hash_packed_value_bytes,
        0, kMaxI32, "bytes of a field or value in a packed hash"},
    Row{"Data", "set-max-intset-entries", "512", When::kAnyTime, Kind::kNumber, &O::set_intset_entries, 0,
        kMaxI32, "members of a set of integers whose encoding is intset"},
    Row{"Data", "zset-max-listpack-entries", "128", When::kAnyTime, Kind::kNumber, &O::zset_packed_entries,
        0, kMaxI32, "members of a sorted set that the server stores packed"},
    Row{"Data", "zset-max-listpack-value", "64", When::kAnyTime, Kind::kNumber,
        &O::zset_packed_member_bytes, 0, kMaxI32, "bytes of a member in a packed sorted set"},

    Row{"Scripts", "busy-reply-threshold", "5000", When::kAnyTime, Kind::kNumber, &O::busy_reply_ms, 1,
        kMaxI32,
        "milliseconds after which a script no longer blocks other clients: the server answers them -BUSY"},
    Row{"Scripts", "script-timeout", "60000", When::kAnyTime, Kind::kNumber, &O::script_hard_ms, 0, kMaxI32,
        "milliseconds after which the server ends a script that has not written; 0: never"},
    Row{"Scripts", "script-memory-limit", "256mb", When::kAnyTime, Kind::kSize, &O::script_memory_bytes,
        1U << 20U, kMaxU64, "memory of all scripts and libraries, and of what they create"},
    Row{"Scripts", "script-run-memory-limit", "16mb", When::kAnyTime, Kind::kSize, &O::script_run_bytes,
        1U << 20U, kMaxU64,
        "memory that one run may take, beside its KEYS and ARGV; and one library of functions, with its "
        "calls"},

    Row{"Logging", "slowlog-log-slower-than", "10000", When::kAnyTime, Kind::kNumberOrOff, &O::slowlog_us,
        0, kMaxI32, "microseconds from which SLOWLOG keeps a command; -1: it keeps none"},
    Row{"Logging", "slowlog-max-len", "128", When::kAnyTime, Kind::kNumber, &O::slowlog_entries, 0, kMaxI32,
        "commands that SLOWLOG keeps; 0: none"},
    Row{"Logging", "latency-monitor-threshold", "0", When::kAnyTime, Kind::kNumber,
        &O::latency_threshold_ms, 0, kMaxI32, "milliseconds from which LATENCY keeps an event; 0: none"},
    Row{"Logging", "latency-tracking", "yes", When::kAnyTime, Kind::kYesNo, &O::latency_tracking, 0, 0,
        "whether the server measures commands for INFO latencystats and LATENCY HISTOGRAM"},
    Row{"Logging", "latency-tracking-info-percentiles", "50 99 99.9", When::kAnyTime, Kind::kPercentiles,
        &O::latency_percentiles, 0, 0, "percentiles that INFO latencystats shows; empty: none"},
    Row{"Logging", "loglevel", "notice", When::kAnyTime, Kind::kLevel, &O::loglevel, 0, 0,
        "debug, verbose, notice or warning"},
    Row{"Logging", "log-format", "text", When::kAnyTime, Kind::kLogFormat, &O::log_format, 0, 0,
        "text: a line has time, level and text; json: each line is a JSON object; journald: as systemd's "
        "journal reads it, <5>text, without a logfile"},
    Row{"Logging", "log-waits-over", "0", When::kAnyTime, Kind::kNumber, &O::log_waits_over_ms, 0, kMaxI32,
        "milliseconds: the log has a line for each wait for a lock that took longer; 0: none"},
    Row{"Logging", "logfile", "", When::kStart, Kind::kPath, &O::logfile, 0, 0,
        "log file; the server opens it again on SIGHUP; empty: standard output"},

    Row{"General", "enable-debug-command", "no", When::kStart, Kind::kDebug, &O::debug_command, 0, 0,
        "which clients may call DEBUG: no: none; yes: all; local: those of the same machine"},
    Row{"General", "hash-seed", "0", When::kStart, Kind::kNumber, &O::hash_seed, 0, kMaxU64,
        "seed of the hash tables, to repeat a run; 0: a random seed"},
};
// clang-format on

// docs/configuration.md lists the old names.
constexpr std::array kAliases{
    Alias{"hash-max-ziplist-entries", "hash-max-listpack-entries"},  // old names in Redis, too
    Alias{"hash-max-ziplist-value", "hash-max-listpack-value"},
    Alias{"inline-max", "max-inline-size"},
    Alias{"journal-max", "journal-max-size"},
    Alias{"lease-memory", "max-ended-leases"},
    Alias{"lua-time-limit", "busy-reply-threshold"},  // Redis has this old name, too
    Alias{"max-owner", "max-owner-size"},
    Alias{"max-patterns", "max-pubsub-patterns"},
    Alias{"script-hard-limit", "script-timeout"},
    Alias{"script-memory", "script-memory-limit"},
    Alias{"script-run-memory", "script-run-memory-limit"},
    Alias{"skip-unknown", "skip-unsupported-types"},
    Alias{"zset-max-ziplist-entries", "zset-max-listpack-entries"},
    Alias{"zset-max-ziplist-value", "zset-max-listpack-value"},
};

constexpr std::array<std::string_view, 4> kLevels{"debug", "verbose", "notice", "warning"};
constexpr std::array<std::string_view, 3> kLogFormats{"text", "json", "journald"};
constexpr std::array<std::string_view, 2> kYesNos{"yes", "no"};
constexpr std::array<std::string_view, 3> kDebugUsers{"no", "yes", "local"};
constexpr std::array<std::string_view, 3> kAuths{"yes", "no", "optional"};
constexpr std::array<std::string_view, 3> kFsyncs{"always", "everysec", "no"};

struct Unit {
  std::string_view name;
  uint64_t factor;
};
constexpr std::array kUnits{Unit{"", 1},           Unit{"b", 1},        Unit{"k", 1000},
                            Unit{"kb", 1U << 10},  Unit{"m", 1000000},  Unit{"mb", 1U << 20},
                            Unit{"g", 1000000000}, Unit{"gb", 1U << 30}};

std::optional<uint64_t> parse_number(std::string_view text, int base) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

// Whether the text is pairs of positive numbers, blank-separated. An empty text is valid.
bool is_pairs(std::string_view text) {
  size_t numbers = 0;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (text.empty()) return numbers % 2 == 0;
    const size_t end = std::min(text.find(' '), text.size());
    if (const auto n = parse_number(text.substr(0, end), 10); !n || *n == 0) return false;
    text.remove_prefix(end);
    ++numbers;
  }
}

std::optional<double> parse_percentile(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  const bool fits = error == std::errc() && stop == end && value >= 0 && value <= 100;
  return fits ? std::optional(value) : std::nullopt;
}

std::optional<uint64_t> parse_size(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::optional<uint64_t> value = parse_number(text.substr(0, digits), 10);
  std::string unit(text.substr(digits));
  std::transform(unit.begin(), unit.end(), unit.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const Unit& u : kUnits) {
    if (u.name != unit || !value || *value > kMaxU64 / u.factor) continue;
    return *value * u.factor;
  }
  return std::nullopt;
}

std::optional<uint64_t> parse_integer(const Row& row, std::string_view text) {
  if (row.kind == Kind::kNumberOrOff && text == "-1") return kSwitchedOff;
  const std::optional<uint64_t> value = row.kind == Kind::kSize    ? parse_size(text)
                                        : row.kind == Kind::kOctal ? parse_number(text, 8)
                                                                   : parse_number(text, 10);
  return value && *value >= row.min && *value <= row.max ? value : std::nullopt;
}

}  // namespace

std::span<const Row> all_option_rows() { return kRows; }

std::span<const Alias> option_aliases() { return kAliases; }

bool is_secret(const Row& row) { return row.kind == Kind::kSecret || row.kind == Kind::kUser; }

bool is_address_list(const Row& row) {
  return row.target == Target(&Options::bind) || row.target == Target(&Options::http_bind);
}

std::span<const std::string_view> choices(const Row& row) {
  if (row.kind == Kind::kLevel) return kLevels;
  if (row.kind == Kind::kLogFormat) return kLogFormats;
  if (row.kind == Kind::kDebug) return kDebugUsers;
  if (row.kind == Kind::kYesNo) return kYesNos;
  if (row.kind == Kind::kAuth) return kAuths;
  if (row.kind == Kind::kFsync) return kFsyncs;
  return {};
}

std::string combined(const Row& row, std::vector<std::string> values) {
  if (row.kind == Kind::kUser) return fmt::format("{}", fmt::join(values, "\n"));
  if (!is_address_list(row)) return values.back();
  std::erase(values, "");
  return fmt::format("{}", fmt::join(values, " "));
}

std::optional<std::vector<double>> parse_percentiles(std::string_view text) {
  std::vector<double> numbers;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (text.empty()) return numbers;
    const size_t end = std::min(text.find(' '), text.size());
    const auto number = parse_percentile(text.substr(0, end));
    if (!number) return std::nullopt;
    numbers.push_back(*number);
    text.remove_prefix(end);
  }
}

std::string expected(const Row& row) {
  if (const auto words = choices(row); !words.empty())
    return fmt::format("{} or {}", fmt::join(words.first(words.size() - 1), ", "), words.back());
  switch (row.kind) {
    case Kind::kText:
    case Kind::kPath:
      return "text without # or line breaks, and without blanks or quotation marks around it";
    case Kind::kSecret:
      return "text without line breaks, and without blanks at its ends or before a #";
    case Kind::kUser:
      return "text";
    case Kind::kSave:
      return "pairs of seconds and changes, such as \"3600 1 60 10000\"";
    case Kind::kBusyPoll:
      return fmt::format("auto, no, or a number from {} to {}", row.min, row.max);
    case Kind::kPercentiles:
      return "numbers from 0 to 100, such as \"50 99 99.9\"";
    case Kind::kEvents:
      return fmt::format("letters from {}", kEventLetters);
    case Kind::kNumber:
      return fmt::format("a number from {} to {}", row.min, row.max);
    case Kind::kNumberOrOff:
      return fmt::format("-1, or a number from {} to {}", row.min, row.max);
    case Kind::kSize:
      return fmt::format("a size from {} to {} bytes, such as 100, 64kb, 512mb or 1gb", row.min, row.max);
    case Kind::kOctal:
      return fmt::format("an octal number from {:o} to {:o}", row.min, row.max);
    case Kind::kPort:
      return fmt::format("a number from {} to {}, or auto", row.min, row.max);
    default:
      return "";
  }
}

// Whether quotation marks are around the text, as in a shell. They would be a part of the value.
static bool is_quoted(std::string_view text) {
  return text.size() > 1 && text.front() == text.back() && (text.front() == '"' || text.front() == '\'');
}

// Whether the config file can contain the text after "name = ", so that reading returns the same text.
static bool is_writable(std::string_view text, bool verbatim) {
  using namespace std::string_view_literals;
  if (text.find_first_of(verbatim ? "\n\r\0"sv : "\n\r\0#"sv) != std::string_view::npos) return false;
  return text.empty() ||
         (text.front() != ' ' && text.front() != '\t' && text.back() != ' ' && text.back() != '\t');
}

// Whether the text may have a comment at its end, which would be a part of the password.
static bool has_comment(std::string_view text) {
  return text.find(" #") != std::string_view::npos || text.find("\t#") != std::string_view::npos;
}

static bool takes_text(const Row& row, std::string_view text) {
  const Kind kind = row.kind;
  if (kind == Kind::kText || kind == Kind::kPath) return is_writable(text, false) && !is_quoted(text);
  if (kind == Kind::kSecret) return is_writable(text, true) && !has_comment(text);
  if (const auto words = choices(row); !words.empty()) return std::ranges::find(words, text) != words.end();
  if (kind == Kind::kSave) return is_pairs(text);
  if (kind == Kind::kBusyPoll) return text == "auto" || text == "no" || parse_integer(row, text);
  if (kind == Kind::kPercentiles) return parse_percentiles(text).has_value();
  return kind != Kind::kEvents || parse_event_flags(text);
}

static bool Options::*any_port_of(const Row& row) {
  if (row.target == Target(&Options::http_port)) return &Options::any_http_port;
  return row.target == Target(&Options::tls_port) ? &Options::any_tls_port : &Options::any_port;
}

bool is_any_port(const Row& row, const Options& options) {
  return row.kind == Kind::kPort && options.*any_port_of(row);
}

bool assign(const Row& row, const std::string& text, Options& options) {
  if (const auto* member = std::get_if<std::string Options::*>(&row.target)) {
    if (!takes_text(row, text)) return false;
    options.*(*member) = text;
    return true;
  }
  const bool any_port = row.kind == Kind::kPort && text == "auto";
  const std::optional<uint64_t> value = any_port ? 0 : parse_integer(row, text);
  if (!value) return false;
  if (row.kind == Kind::kPort) options.*any_port_of(row) = any_port;
  options.*std::get<uint64_t Options::*>(row.target) = *value;
  return true;
}

std::string shown(const Row& row, const Options& options) {
  if (row.kind == Kind::kEvents) return event_flags_text(*parse_event_flags(options.notify_events));
  if (const auto* member = std::get_if<std::string Options::*>(&row.target)) return options.*(*member);
  const uint64_t value = options.*std::get<uint64_t Options::*>(row.target);
  if (row.kind == Kind::kNumberOrOff && value == kSwitchedOff) return "-1";
  return row.kind == Kind::kOctal ? fmt::format("{:o}", value) : std::to_string(value);
}

std::string refusal(const Row& row, const std::string& text) {
  switch (row.kind) {
    case Kind::kSize:
      if (!parse_size(text)) return "argument must be a memory value";
      break;
    case Kind::kNumber:
    case Kind::kNumberOrOff:
      if (text.empty() ||
          text.find_first_not_of("0123456789", text[0] == '-' ? 1 : 0) != std::string::npos) {
        return "argument couldn't be parsed into an integer";
      }
      break;
    case Kind::kLevel:
      return fmt::format("argument(s) must be one of the following: {}", fmt::join(kLevels, ", "));
    case Kind::kEvents:
      return fmt::format("Invalid event class character. Use '{}'.", kEventLetters);
    default:
      return fmt::format("expected {}", expected(row));
  }
  const std::string least = row.kind == Kind::kNumberOrOff ? "-1" : std::to_string(row.min);
  return fmt::format("argument must be between {} and {} inclusive", least, row.max);
}

LogLevel log_level(const Options& options) {
  const auto* found = std::find(kLevels.begin(), kLevels.end(), options.loglevel);
  return static_cast<LogLevel>(found - kLevels.begin());
}

LogFormat log_format(const Options& options) {
  return static_cast<LogFormat>(std::ranges::find(kLogFormats, options.log_format) - kLogFormats.begin());
}

LogFormat wanted_log_format(int argc, const char* const* argv) {
  constexpr std::string_view kName = "--log-format";
  LogFormat format = LogFormat::kText;
  for (int i = 1; i < argc; ++i) {
    std::string_view word = argv[i];
    if (!word.starts_with(kName)) continue;
    word.remove_prefix(kName.size());
    const std::string_view value = word.starts_with('=')          ? word.substr(1)
                                   : word.empty() && i + 1 < argc ? argv[i + 1]
                                                                  : "";
    const auto* found = std::ranges::find(kLogFormats, value);
    if (found != kLogFormats.end()) format = static_cast<LogFormat>(found - kLogFormats.begin());
  }
  return format;
}

}  // namespace holdfast
