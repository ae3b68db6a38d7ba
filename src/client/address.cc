// The grammar:
//   place    = ( holdfast server | redis [ login ] server | "quorum://" member { "," member }
//              | cluster [ login ] server { "," server } ) [ "?" setting { "&" setting } ]
//            | "embedded:" [ name ]
//   holdfast = "holdfast://" | "holdfasts://"         the second each time is over TLS
//   redis    = "redis://" | "rediss://"
//   cluster  = "redis-cluster://" | "rediss-cluster://"
//   member   = [ holdfast ] server | redis [ login ] server
//   login    = [ user ] ":" password "@"        with %40 for @ and the like
//   server   = ( host | "[" IPv6 address "]" ) [ ":" port ]
//   setting  = name "=" ( number | text ) | "insecure"        in a text, %26 for & and the like
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

struct Scheme {
  std::string_view text;
  bool redis = false, cluster = false, quorum = false, tls = false;
};
constexpr std::array<Scheme, 7> kSchemes{{
    {.text = "holdfast://"},
    {.text = "holdfasts://", .tls = true},
    {.text = "quorum://", .quorum = true},
    {.text = "redis://", .redis = true},
    {.text = "rediss://", .redis = true, .tls = true},
    {.text = "redis-cluster://", .redis = true, .cluster = true},
    {.text = "rediss-cluster://", .redis = true, .cluster = true, .tls = true},
}};

// By which the text begins, or null.
const Scheme* scheme_of(std::string_view text) {
  const auto* const found =
      std::ranges::find_if(kSchemes, [&](const Scheme& known) { return text.starts_with(known.text); });
  return found == kSchemes.end() ? nullptr : found;
}

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
      refuse(text, "behind a % stand two digits, as in %40");
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

Address parse_server(std::string_view text, std::string_view server, const Scheme& scheme) {
  Address address;
  address.redis = scheme.redis;
  address.tls = scheme.tls;
  if (address.redis) {
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
  const Scheme* scheme = scheme_of(member);
  if (scheme != nullptr && !scheme->cluster && !scheme->quorum)
    return parse_server(text, member.substr(scheme->text.size()), *scheme);
  if (member.find("//") != std::string_view::npos)
    refuse(text,
           "a server of a quorum is host:port, redis://host:port, or with TLS holdfasts://host:port or "
           "rediss://host:port");
  return parse_server(text, member, {});
}

void read_servers(Place& place, std::string_view text, std::string_view list, const Scheme& scheme) {
  if (list.ends_with(',')) refuse(text, "a server is missing behind the last comma");
  while (true) {
    const std::string_view part = next_part(list, ',');
    const Address address = scheme.quorum ? parse_member(text, part) : parse_server(text, part, scheme);
    const auto is_it = [&](const Address& other) { return other.text() == address.text(); };
    if (std::ranges::any_of(place.servers, is_it))
      refuse(text, address.text() + " is there twice; a quorum needs different servers");
    place.servers.push_back(address);
    if (list.empty()) break;
  }
  if (place.servers.size() == 1 || scheme.quorum || scheme.cluster) return;
  refuse(text, scheme.redis ? "redis:// has one server; a Redis Cluster is redis-cluster://, and several "
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

// What of TLS stands in no TlsSettings.
struct TlsWish {
  bool all = false;  // servers
  std::string name;
  std::string given;  // a setting that would do nothing without
};

// Whether it is one of those.
bool read_tls_setting(Place& place, TlsWish& wish, std::string_view text, std::string_view setting) {
  std::string_view value = setting;
  const std::string name(next_part(value, '='));
  const std::array<std::pair<std::string_view, std::string*>, 5> texts{{{"cacert", &place.tls.ca_file},
                                                                        {"cacertdir", &place.tls.ca_dir},
                                                                        {"cert", &place.tls.cert_file},
                                                                        {"key", &place.tls.key_file},
                                                                        {"sni", &wish.name}}};
  if (name == "tls") {
    if (value != "yes") refuse(text, "tls=yes is all that tls can be; leave it away for none");
    return wish.all = true;
  }
  if (name == "insecure") {
    if (!value.empty() && value != "yes") refuse(text, "insecure stands alone; leave it away to verify");
    place.tls.verify = TlsVerify::kNone;
    wish.given = name;
    return true;
  }
  for (const auto& [known, into] : texts) {
    if (name != known) continue;
    if (value.empty())
      refuse(text, name + " needs " + (name == "sni" ? "a name" : "a file") + " behind a =");
    *into = decoded(text, value);
    wish.given = name;
    return true;
  }
  return false;
}

void settle_tls(Place& place, const TlsWish& wish, std::string_view text) {
  bool any = false;
  const auto settle = [&](Address& address) {
    address.tls = address.tls || wish.all;
    if (address.tls) address.tls_name = wish.name;
    any = any || address.tls;
  };
  for (Address& address : place.servers) {
    settle(address);
    for (Address& other : address.others) settle(other);
  }
  if (!any && !wish.given.empty()) {
    refuse(text, wish.given +
                     " is about TLS, which no server here has: write holdfasts://, rediss:// or "
                     "rediss-cluster://, or tls=yes for all");
  }
  if (place.tls.verify == TlsVerify::kNone && !(place.tls.ca_file + place.tls.ca_dir).empty())
    refuse(text,
           "insecure verifies nothing, so nothing would come of the authority: leave one of them away");
}

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
                   "\", only timeout, min-wait, max-wait, rfactor, wquorum, rquorum, acks, ack-timeout, "
                   "tls, cacert, cacertdir, cert, key, sni and insecure");
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
  const Scheme* scheme = scheme_of(text);
  if (scheme == nullptr) {
    refuse(text,
           "begin with holdfast://host:port for one server, quorum://host1,host2,host3 for several, "
           "redis://host:port or redis-cluster://host1,host2 for Redis, with TLS holdfasts://, rediss:// "
           "or rediss-cluster://, or embedded: for none but this program");
  }
  std::string_view settings = text.substr(scheme->text.size());
  const std::string_view list = next_part(settings, '?');
  Place place;
  place.tls.role = TlsRole::kClient;
  Numbers numbers;
  read_servers(place, text, list, *scheme);
  if (scheme->cluster) join_cluster(place, text);
  TlsWish tls;
  while (!settings.empty()) {
    const std::string_view setting = next_part(settings, '&');
    if (!read_tls_setting(place, tls, text, setting)) read_setting(place, numbers, text, setting);
  }
  if (place.min_wait > place.max_wait) refuse(text, "min-wait is more than max-wait");
  settle_quorums(place, numbers, text);
  settle_acks(place, numbers, text);
  settle_tls(place, tls, text);
  return place;
}

Place open_place(std::string_view text) {
  Place place = parse_place(text);
  if (std::ranges::none_of(place.servers, &Address::tls)) return place;
  const TlsContextMade made = TlsContext::make(place.tls);
  if (!made.context) refuse(text, made.why);
  for (Address& address : place.servers) {
    if (!address.tls) continue;
    address.tls_context = made.context;
    for (Address& other : address.others) other.tls_context = made.context;
  }
  return place;
}

}  // namespace holdfast::client
