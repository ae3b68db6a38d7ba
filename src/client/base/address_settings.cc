// Parses the settings of an address, and implements address_parts.h. The grammar is in address.cc.
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <stdexcept>
#include <utility>

#include "client/base/address.h"
#include "client/base/address_parts.h"
#include "core/base/parse.h"

namespace holdfast::client {

namespace {

constexpr int64_t kMaxMs = int64_t{1} << 31U;

struct Numbers {
  std::optional<int64_t> replicas, write, read, acks, ack_timeout, attempts, backoff, backoff_max;
  std::optional<double> backoff_factor;
};

// Reads `user` or `password`, which apply to all servers. Returns false for any other setting.
bool read_login_setting(Login& login, std::string_view text, std::string_view setting) {
  std::string_view value = setting;
  const std::string_view name = next_part(value, '=');
  if (name != "user" && name != "password") return false;
  if (value.empty()) refuse(text, std::string(name) + " has no value; leave it out for no login");
  (name == "user" ? login.user : login.password) = decoded(text, value);
  return true;
}

void settle_login(ClientConfig& config, const Login& login, std::string_view text) {
  if (login.user.empty() && login.password.empty()) return;
  if (login.password.empty()) refuse(text, "user= needs password=, too");
  if (!log_in(config, login))
    refuse(text, "password= is for servers without a login before the host; here each server has one");
}

// The TLS settings that are not part of TlsSettings.
struct TlsChoice {
  bool all = false;  // all servers use TLS
  std::string name;
  std::string given;  // a setting that has no effect without TLS
};

// Reads a TLS setting. Returns false for any other setting.
bool read_tls_setting(ClientConfig& config, TlsChoice& choice, std::string_view text,
                      std::string_view setting) {
  std::string_view value = setting;
  const std::string name(next_part(value, '='));
  const std::array<std::pair<std::string_view, std::string*>, 5> texts{{{"cacert", &config.tls.ca_file},
                                                                        {"cacertdir", &config.tls.ca_dir},
                                                                        {"cert", &config.tls.cert_file},
                                                                        {"key", &config.tls.key_file},
                                                                        {"sni", &choice.name}}};
  if (name == "tls") {
    if (value != "yes") refuse(text, "tls must be tls=yes; leave it out for no TLS");
    return choice.all = true;
  }
  if (name == "insecure") {
    if (!value.empty() && value != "yes")
      refuse(text, "insecure takes no value; leave it out to verify certificates");
    config.tls.verify = TlsVerify::kNone;
    choice.given = name;
    return true;
  }
  for (const auto& [known, into] : texts) {
    if (name != known) continue;
    if (value.empty()) refuse(text, name + " needs " + (name == "sni" ? "a name" : "a file") + " after =");
    *into = decoded(text, value);
    choice.given = name;
    return true;
  }
  return false;
}

void settle_tls(ClientConfig& config, const TlsChoice& choice, std::string_view text) {
  bool any = false;
  const auto settle = [&](Address& address) {
    address.tls = address.tls || choice.all;
    if (address.tls) address.tls_name = choice.name;
    any = any || address.tls;
  };
  for (Address& address : config.servers) {
    settle(address);
    for (Address& other : address.others) settle(other);
  }
  if (!any && !choice.given.empty()) {
    refuse(text, choice.given +
                     " needs TLS, which no server here uses: write holdfasts://, rediss:// or "
                     "rediss-cluster://, or tls=yes for all");
  }
  if (config.tls.verify == TlsVerify::kNone && !(config.tls.ca_file + config.tls.ca_dir).empty())
    refuse(text,
           "insecure turns verification off, so cacert and cacertdir have no effect: leave it or them out");
}

// Returns a factor from 1 to RetryBackoff::kLargestFactor; nullopt for any other text.
std::optional<double> parse_factor(std::string_view text) {
  double factor = 0;
  const auto [end, wrong] =
      std::from_chars(text.data(), text.data() + text.size(), factor, std::chars_format::fixed);
  const bool whole = wrong == std::errc() && end == text.data() + text.size();
  return whole && factor >= 1 && factor <= RetryBackoff::kLargestFactor ? std::optional(factor)
                                                                        : std::nullopt;
}

void read_setting(ClientConfig& config, Numbers& numbers, std::string_view text, std::string_view setting) {
  std::string_view value = setting;
  const std::string name(next_part(value, '='));
  if (name == "backoff-factor") {
    numbers.backoff_factor = parse_factor(value);
    if (!numbers.backoff_factor) refuse(text, name + " must be a number from 1 to 100, as in 1.5");
    return;
  }
  const std::array<std::pair<std::string_view, DurationMs*>, 3> times{{{"timeout", &config.server_timeout},
                                                                       {"min-wait", &config.min_wait},
                                                                       {"max-wait", &config.max_wait}}};
  const std::array<std::pair<std::string_view, std::optional<int64_t>*>, 8> others{
      {{"rfactor", &numbers.replicas},
       {"wquorum", &numbers.write},
       {"rquorum", &numbers.read},
       {"acks", &numbers.acks},
       {"ack-timeout", &numbers.ack_timeout},
       {"attempts", &numbers.attempts},
       {"backoff", &numbers.backoff},
       {"backoff-max", &numbers.backoff_max}}};
  const auto number = [&] {
    const auto parsed = parse_int_in(value, 1, kMaxMs);
    if (!parsed) refuse(text, name + " must be a number of at least 1");
    return *parsed;
  };
  for (const auto& [known, time] : times) {
    if (name == known) return static_cast<void>(*time = {number()});
  }
  for (const auto& [known, other] : others) {
    if (name == known) return static_cast<void>(*other = number());
  }
  refuse(text, "there is no setting " + quoted(text, name, "of that name") +
                   ", only timeout, min-wait, max-wait, attempts, backoff, backoff-factor, backoff-max, "
                   "rfactor, wquorum, rquorum, acks, ack-timeout, user, password, tls, cacert, cacertdir, "
                   "cert, key, sni and insecure; in a password %26 stands for & and %3f for ?");
}

void settle_retries(ClientConfig& config, const Numbers& numbers, std::string_view text) {
  if (config.min_wait > config.max_wait) refuse(text, "min-wait is more than max-wait");
  config.max_attempts = static_cast<uint32_t>(numbers.attempts.value_or(0));
  if (!numbers.backoff && !numbers.backoff_factor && !numbers.backoff_max) return;
  if (!numbers.backoff)
    refuse(text, "backoff-factor and backoff-max need the first pause: give backoff, too");
  RetryBackoff backoff{milliseconds(*numbers.backoff)};
  backoff.factor = numbers.backoff_factor.value_or(backoff.factor);
  backoff.longest = std::max(backoff.longest, backoff.first);
  if (numbers.backoff_max) backoff.longest = milliseconds(*numbers.backoff_max);
  if (backoff.longest < backoff.first) refuse(text, "backoff-max is less than backoff");
  config.backoff = backoff;
}

// Any two exclusive holds, and an exclusive and a shared hold, must have at least one server in common.
void settle_quorums(ClientConfig& config, const Numbers& quorums, std::string_view text) {
  const auto servers = static_cast<int64_t>(config.servers.size());
  const int64_t replicas = quorums.replicas.value_or(servers);
  if (replicas > servers) refuse(text, "rfactor is more than the number of servers");
  const int64_t write = quorums.write.value_or(
      std::max(replicas / 2 + 1, quorums.read ? replicas - *quorums.read + 1 : int64_t{1}));
  const int64_t read = quorums.read.value_or(std::max(replicas - write + 1, replicas / 2 + 1));
  if (write > replicas || read > replicas) refuse(text, "a quorum is more than rfactor");
  if (2 * write <= replicas) refuse(text, "wquorum must be more than half of rfactor");
  if (read + write <= replicas) refuse(text, "rquorum + wquorum must be more than rfactor");
  config.replicas = static_cast<size_t>(replicas);
  config.write_quorum = static_cast<size_t>(write);
  config.read_quorum = static_cast<size_t>(read);
}

// Sets `acks` for the Redis servers, which may have replicas. The acknowledgement must come within
// `timeout`.
void settle_acks(ClientConfig& config, const Numbers& numbers, std::string_view text) {
  if (!numbers.acks && !numbers.ack_timeout) return;
  if (!numbers.acks) refuse(text, "ack-timeout limits the wait for acks: give acks, too");
  const DurationMs longest = config.server_timeout;
  const DurationMs within{numbers.ack_timeout.value_or(std::max<int64_t>(longest.count / 2, 1))};
  if (within >= longest) refuse(text, "ack-timeout must be less than timeout");
  if (*numbers.acks > 1000) refuse(text, "acks must be at most 1000");
  bool any = false;
  for (Address& address : config.servers) {
    if (!address.redis) continue;
    any = true;
    address.acks = static_cast<int>(*numbers.acks);
    address.ack_timeout = within;
  }
  if (!any) refuse(text, "acks needs a Redis with replicas; there is no redis:// here");
}

}  // namespace

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw std::invalid_argument("\"" + shown_address(text) + "\": " + why);
}

std::string quoted(std::string_view text, std::string_view part, const char* instead) {
  return may_have_secret(text) ? instead : "\"" + std::string(part) + "\"";
}

std::string_view next_part(std::string_view& rest, char separator) {
  const size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

std::string decoded(std::string_view text, std::string_view word) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; i < word.size(); ++i) {
    if (word[i] != '%') {
      out += word[i];
      continue;
    }
    const auto digit = [&](size_t at) {
      const char c = at < word.size() ? word[at] : '?';
      return kDigits.find(c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c);
    };
    const size_t high = digit(i + 1);
    const size_t low = digit(i + 2);
    if (high == std::string_view::npos || low == std::string_view::npos)
      refuse(text, "two hexadecimal digits must follow a %, as in %40");
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

void put(Address& address, const Login& login) {
  address.user = login.user;
  address.password = login.password;
}

bool log_in(ClientConfig& config, const Login& login) {
  bool used = false;
  for (Address& address : config.servers) {
    if (!address.password.empty() || address.embedded) continue;
    put(address, login);
    for (Address& other : address.others) put(other, login);
    used = true;
  }
  return used;
}

void read_settings(ClientConfig& config, std::string_view text, std::string_view settings) {
  Numbers numbers;
  TlsChoice tls;
  Login login;
  while (!settings.empty()) {
    const std::string_view setting = next_part(settings, '&');
    if (read_login_setting(login, text, setting) || read_tls_setting(config, tls, text, setting)) continue;
    read_setting(config, numbers, text, setting);
  }
  settle_login(config, login, text);
  settle_retries(config, numbers, text);
  settle_quorums(config, numbers, text);
  settle_acks(config, numbers, text);
  settle_tls(config, tls, text);
}

}  // namespace holdfast::client
