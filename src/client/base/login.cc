// A malformed address has no known parts. So the rules here look for signs of a password, and hide too much
// rather than too little.
#include "client/base/login.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "client/base/server_error.h"
#include "core/base/parse.h"

namespace holdfast::client {

namespace {

using Advice = std::pair<std::string_view, std::string_view>;  // the start of an error, and the remedy
constexpr std::array<Advice, 5> kAdvice{{
    {"NOAUTH",
     "the server requires a password: write user:password@ or :password@ before the host, or set "
     "HOLDFAST_PASSWORD; the command also has --password-file"},
    {"WRONGPASS", "check the user and the password"},
    {"NOPERM", "the ACL user lacks a right; docs/security.md lists the rights that the library needs"},
    {"ERR AUTH ", "the server has no password for this user: leave the login out, or set one there"},
    {"ERR Client sent AUTH", "the server has no password: leave the login out, or set one there"},
}};

// Of the client's own words for a server that it does not reach, and of the resolver's.
constexpr std::array<Advice, 6> kAway{{
    {"protocol error", "does a Holdfast server or a Redis listen there? check host and port"},
    {"no answer in", "does a Holdfast server or a Redis listen there? check host and port"},
    {"no answer so far", "does a Holdfast server or a Redis listen there? check host and port"},
    {"no connection in", "check the host, and whether a firewall blocks the port"},
    {"unknown node or service", "the host name cannot be resolved: check its spelling"},
    {"temporary failure", "the host name cannot be resolved at the moment: check DNS"},
}};

const Advice* advice_for(std::string_view error, std::span<const Advice> among = kAdvice) {
  const auto found =
      std::ranges::find_if(among, [&](const Advice& known) { return error.starts_with(known.first); });
  return found == among.end() ? nullptr : &*found;
}

std::string variable(const char* name) {
  const char* value = secure_getenv(name);
  return value == nullptr ? "" : value;
}

// Returns the length of "scheme://" in "scheme://rest"; 0 if the address has no scheme.
size_t scheme_size(std::string_view address) {
  const size_t end = address.find("://");
  const bool named =
      end != std::string_view::npos &&
      address.substr(0, end).find_first_not_of("abcdefghijklmnopqrstuvwxyz-") == std::string_view::npos;
  return named ? end + 3 : 0;
}

// Whether there is a colon without a host before it or a port after it, outside an IPv6 address: ":secret",
// "me:secret".
bool has_odd_colon(std::string_view servers) {
  bool bracket = false;
  for (size_t i = 0; i < servers.size(); ++i) {
    if (servers[i] == '[') bracket = true;
    if (servers[i] == ']') bracket = false;
    if (servers[i] != ':' || bracket || servers.substr(i).starts_with("://")) continue;
    const bool begins = i == 0 || servers[i - 1] == ',' || servers[i - 1] == '/';
    const bool port = i + 1 < servers.size() && is_digit(servers[i + 1]);
    if (begins || !port) return true;
  }
  return false;
}

constexpr std::array<std::string_view, 19> kHarmless{
    "timeout",     "min-wait", "max-wait", "attempts", "backoff", "backoff-factor", "backoff-max",
    "rfactor",     "wquorum",  "rquorum",  "acks",     "tls",     "cacert",         "cacertdir",
    "ack-timeout", "cert",     "key",      "user",     "sni"};

// Whether there is an unknown setting that may be secret: a misspelled name, as "pasword=secret", or the
// rest of a password that contains & or ?.
bool has_odd_setting(std::string_view settings) {
  while (!settings.empty()) {
    const std::string_view setting = settings.substr(0, settings.find('&'));
    settings.remove_prefix(std::min(setting.size() + 1, settings.size()));
    const std::string_view name = setting.substr(0, setting.find('='));
    if (std::ranges::find(kHarmless, name) != kHarmless.end() || name == "insecure") continue;
    const std::string_view value = setting.substr(std::min(name.size() + 1, setting.size()));
    if (name.starts_with('p') || value.find_first_not_of("0123456789") != std::string_view::npos)
      return true;
  }
  return false;
}

void overwrite(std::span<char> chars) { std::ranges::fill(chars, '*'); }

}  // namespace

Login environment_login() { return {variable(kUserVariable), variable(kPasswordVariable)}; }

bool may_have_secret(std::string_view address) {
  if (address.find('@') != std::string_view::npos || address.find("pass") != std::string_view::npos)
    return true;
  const std::string_view rest = address.substr(scheme_size(address));
  const size_t end = std::min(rest.find('?'), rest.size());
  if (has_odd_setting(rest.substr(std::min(end + 1, rest.size())))) return true;
  return !address.starts_with("embedded:") && has_odd_colon(rest.substr(0, end));
}

std::string shown_address(std::string_view address) {
  if (!may_have_secret(address)) return std::string(address);
  return std::string(address.substr(0, scheme_size(address))) + "...";
}

void hide_logins(std::span<char> word, bool is_address) {
  constexpr std::string_view kOption = "--servers=";
  const std::string_view text(word.data(), word.size());
  const bool option = text.starts_with(kOption);
  const size_t slashes = text.find("://");
  if (slashes == std::string_view::npos && !option && !is_address) return;
  // What stands before the slashes may be a login, too: "me:secret@h1,redis://h2".
  const size_t begin = option       ? kOption.size() + scheme_size(text.substr(kOption.size()))
                       : is_address ? scheme_size(text)
                                    : slashes + 3;
  const size_t last = text.rfind('@');
  if (last != std::string_view::npos && last > begin) overwrite(word.subspan(begin, last - begin));
  for (size_t at = text.find("password=", begin); at != std::string_view::npos;
       at = text.find("password=", at + 1)) {
    const size_t value = at + std::string_view("password=").size();
    overwrite(word.subspan(value, std::min(text.find('&', value), text.size()) - value));
  }
}

bool is_login_refusal(std::string_view error) { return is_login_refusal(server_error_of(error)); }

std::string with_advice(const std::string& error) {
  const Advice* advice = advice_for(error);
  if (advice == nullptr) advice = advice_for(error, kAway);
  return advice == nullptr ? error : error + " (" + std::string(advice->second) + ")";
}

}  // namespace holdfast::client
