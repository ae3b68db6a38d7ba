// The grammar:
//   place    = ( "holdfast://" server | "quorum://" member { "," member }
//              | "redis://" [ login ] server | "redis-cluster://" [ login ] server { "," server } )
//              [ "?" setting { "&" setting } ]
//            | "embedded:" [ name ]
//   member   = server | "redis://" [ login ] server
//   login    = [ user ] ":" password "@"        with %40 for @ and the like
//   server   = ( host | "[" IPv6 address "]" ) [ ":" port ]
//   setting  = name "=" number
#include "client/address.h"

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <utility>

#include "core/parse.h"

namespace holdfast::client {

namespace {

constexpr std::string_view kEmbedded = "embedded:";
constexpr int64_t kMaxMs = int64_t{1} << 31U;

constexpr std::string_view kRedis = "redis://";
constexpr std::string_view kCluster = "redis-cluster://";

// Passwords are not shown.
std::string shown(std::string_view text) {
  std::string out(text);
  for (size_t at = out.find('@'); at != std::string::npos; at = out.find('@', at + 1)) {
    const size_t slash = out.rfind("//", at);
    const size_t begin = slash == std::string::npos ? 0 : slash + 2;
    out.replace(begin, at - begin, "...");
    at = begin + 3;
  }
  return out;
}

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw std::invalid_argument("\"" + shown(text) + "\": " + why);
}

// Cuts off what stands before the first `separator`, all where there is none.
std::string_view next_part(std::string_view& rest, char separator) {
  const size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

// As a URI has it: %40 is an @.
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
      refuse(text, "behind a % in a login stand two digits, as in %40");
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

// Takes the login off `server`.
void read_login(Address& address, std::string_view text, std::string_view& server) {
  const size_t at = server.rfind('@');
  if (at == std::string_view::npos) return;
  std::string_view password = server.substr(0, at);
  server.remove_prefix(at + 1);
  address.user = decoded(text, next_part(password, ':'));
  address.password = decoded(text, password);
  if (address.password.empty())
    refuse(text, "a login is :password@ or user:password@, with %40 for an @ in it");
}

Address parse_server(std::string_view text, std::string_view server, bool redis = false) {
  Address address;
  address.redis = redis;
  if (redis) {
    address.port = kRedisPort;
    read_login(address, text, server);
    if (server.find('/') != std::string_view::npos)
      refuse(text, "the locks are in database 0, which cannot be chosen");
  }
  const bool bracket = server.starts_with('[');
  const size_t end = bracket ? server.find(']') : server.find(':');
  if (bracket && end == std::string_view::npos) refuse(text, "an address lacks its closing bracket");
  address.host = bracket ? server.substr(1, end - 1) : server.substr(0, end);
  const std::string_view rest = end == std::string_view::npos ? "" : server.substr(end + (bracket ? 1 : 0));
  if (address.host.empty()) refuse(text, "a server has no name; write host, host:port or [::1]:port");
  if (rest.empty()) return address;
  if (!rest.starts_with(':')) refuse(text, "behind the bracket comes :port, or nothing");
  const auto number = parse_int_in(rest.substr(1), 1, 65535);
  if (!number) {
    refuse(text, "\"" + std::string(rest.substr(1)) +
                     "\" is no port, which is 1 to 65535; an IPv6 address stands in brackets");
  }
  address.port = static_cast<int>(*number);
  return address;
}

// One of a quorum may say what it is.
Address parse_member(std::string_view text, std::string_view member) {
  if (member.starts_with(kRedis)) return parse_server(text, member.substr(kRedis.size()), true);
  if (member.find("//") != std::string_view::npos)
    refuse(text, "a server of a quorum is host:port or redis://host:port");
  return parse_server(text, member);
}

void read_servers(Place& place, std::string_view text, std::string_view list, std::string_view scheme) {
  if (list.ends_with(',')) refuse(text, "a server is missing behind the last comma");
  while (true) {
    const std::string_view part = next_part(list, ',');
    const bool redis = scheme == kRedis || scheme == kCluster;
    const Address address = redis ? parse_server(text, part, true) : parse_member(text, part);
    const auto is_it = [&](const Address& other) { return other.text() == address.text(); };
    if (std::ranges::any_of(place.servers, is_it))
      refuse(text, address.text() + " is there twice; a quorum needs different servers");
    place.servers.push_back(address);
    if (list.empty()) break;
  }
  if (place.servers.size() == 1 || scheme == "quorum://" || scheme == kCluster) return;
  refuse(text, scheme == kRedis
                   ? "redis:// has one server; a Redis Cluster is redis-cluster://, and several "
                     "independent ones are quorum://redis://h1,redis://h2,redis://h3"
                   : "holdfast:// has one server; several are quorum://");
}

// The nodes of a cluster are one server, whose login stands before the first.
void join_cluster(Place& place, std::string_view text) {
  Address cluster = place.servers.front();
  cluster.cluster = true;
  for (size_t i = 1; i < place.servers.size(); ++i) {
    if (!place.servers[i].password.empty())
      refuse(text, "the login of a cluster stands before its first node");
    place.servers[i].user = cluster.user;
    place.servers[i].password = cluster.password;
    cluster.others.push_back(place.servers[i]);
  }
  place.servers = {cluster};
}

struct Numbers {
  std::optional<int64_t> replicas, write, read, acks, ack_timeout;
};

void read_setting(Place& place, Numbers& numbers, std::string_view text, std::string_view setting) {
  std::string_view value = setting;
  const std::string name(next_part(value, '='));
  const auto number = parse_int_in(value, 1, kMaxMs);
  if (!number) refuse(text, name + " must be a number of at least 1");
  const std::array<std::pair<std::string_view, DurationMs*>, 3> times{
      {{"timeout", &place.server_timeout}, {"min-wait", &place.min_wait}, {"max-wait", &place.max_wait}}};
  const std::array<std::pair<std::string_view, std::optional<int64_t>*>, 5> others{
      {{"rfactor", &numbers.replicas},
       {"wquorum", &numbers.write},
       {"rquorum", &numbers.read},
       {"acks", &numbers.acks},
       {"ack-timeout", &numbers.ack_timeout}}};
  for (const auto& [known, time] : times) {
    if (name == known) return static_cast<void>(*time = {*number});
  }
  for (const auto& [known, other] : others) {
    if (name == known) return static_cast<void>(*other = *number);
  }
  refuse(text, "there is no setting \"" + name +
                   "\", only timeout, min-wait, max-wait, rfactor, wquorum, rquorum, acks and ack-timeout");
}

// Exclusive holds must meet one another, and shared ones must meet exclusive ones, on at least one server.
void settle_quorums(Place& place, const Numbers& quorums, std::string_view text) {
  const auto servers = static_cast<int64_t>(place.servers.size());
  const int64_t replicas = quorums.replicas.value_or(servers);
  if (replicas > servers) refuse(text, "rfactor is more than there are servers");
  const int64_t write = quorums.write.value_or(
      std::max(replicas / 2 + 1, quorums.read ? replicas - *quorums.read + 1 : int64_t{1}));
  const int64_t read = quorums.read.value_or(std::max(replicas - write + 1, replicas / 2 + 1));
  if (write > replicas || read > replicas) refuse(text, "a quorum is more than rfactor");
  if (2 * write <= replicas) refuse(text, "wquorum must be more than half of rfactor");
  if (read + write <= replicas) refuse(text, "rquorum + wquorum must be more than rfactor");
  place.replicas = static_cast<size_t>(replicas);
  place.write_quorum = static_cast<size_t>(write);
  place.read_quorum = static_cast<size_t>(read);
}

// Of the servers that have replicas; the answer is to come while it counts.
void settle_acks(Place& place, const Numbers& numbers, std::string_view text) {
  if (!numbers.acks && !numbers.ack_timeout) return;
  if (!numbers.acks) refuse(text, "ack-timeout says how long acks are waited for: give acks, too");
  const DurationMs longest = place.server_timeout;
  const DurationMs within{numbers.ack_timeout.value_or(std::max<int64_t>(longest.count / 2, 1))};
  if (within >= longest) refuse(text, "ack-timeout must be less than timeout");
  if (*numbers.acks > 1000) refuse(text, "acks is at most 1000");
  bool any = false;
  for (Address& address : place.servers) {
    if (!address.redis) continue;
    any = true;
    address.acks = static_cast<int>(*numbers.acks);
    address.ack_timeout = within;
  }
  if (!any) refuse(text, "acks are of replicas of Redis; there is no redis:// here");
}

// The signs of the other forms are kept out of names, as they show what was meant.
Place parse_embedded(std::string_view text) {
  const std::string_view name = text.substr(kEmbedded.size());
  if (name.find('?') != std::string_view::npos) refuse(text, "embedded: has no settings");
  if (name.find_first_of("/,&") != std::string_view::npos)
    refuse(text,
           "embedded: is in this program; behind it comes a name without slash and comma, or nothing");
  Place place;
  place.servers.push_back({std::string(name), 0, true});
  return place;
}

}  // namespace

std::string Address::text() const {
  if (embedded) return host.empty() ? "embedded" : "embedded:" + host;
  const bool bracket = host.find(':') != std::string::npos;
  std::string all = (bracket ? "[" + host + "]" : host) + ":" + std::to_string(port);
  for (const Address& other : others) all += "," + other.text();
  return all;
}

std::vector<std::string> Place::names() const {
  std::vector<std::string> all;
  for (const Address& address : servers) all.push_back(address.text());
  return all;
}

size_t quorum_of(const Place& place, Mode mode) {
  switch (mode) {
    case Mode::kExclusiveLock:
      return place.write_quorum;
    case Mode::kSharedLock:
      return place.read_quorum;
    case Mode::kCountedLock:
      break;
  }
  return place.replicas;  // with fewer, different ones could let in more than the limit together
}

Place parse_place(std::string_view text) {
  if (text.starts_with(kEmbedded)) return parse_embedded(text);
  constexpr std::array<std::string_view, 4> kSchemes{"holdfast://", "quorum://", kRedis, kCluster};
  const auto* const scheme =
      std::ranges::find_if(kSchemes, [&](std::string_view known) { return text.starts_with(known); });
  if (text.starts_with("rediss://"))
    refuse(text,
           "TLS needs a hiredis of at least 1.0, and this is built with an older one; let a tunnel do "
           "it (stunnel, the cloud's proxy), and name that by redis://");
  if (scheme == kSchemes.end()) {
    refuse(text,
           "begin with holdfast://host:port for one server, quorum://host1,host2,host3 for several, "
           "redis://host:port or redis-cluster://host1,host2 for Redis, or embedded: for none but this "
           "program");
  }
  std::string_view settings = text.substr(scheme->size());
  const std::string_view list = next_part(settings, '?');
  Place place;
  Numbers numbers;
  read_servers(place, text, list, *scheme);
  if (*scheme == kCluster) join_cluster(place, text);
  while (!settings.empty()) read_setting(place, numbers, text, next_part(settings, '&'));
  if (place.min_wait > place.max_wait) refuse(text, "min-wait is more than max-wait");
  settle_quorums(place, numbers, text);
  settle_acks(place, numbers, text);
  return place;
}

}  // namespace holdfast::client
