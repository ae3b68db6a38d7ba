// The grammar:
//   place    = ( [ holdfast ] [ login ] server | redis [ login ] server
//              | [ "quorum://" ] [ login ] member { "," member }
//              | cluster [ login ] server { "," server } ) [ "?" setting { "&" setting } ]
//            | "embedded:" [ name ]
//   The login before the members of a quorum applies to each member without its own.
//   holdfast = "holdfast://" | "holdfasts://"         of each such pair, the second uses TLS
//   Without a scheme, one server means holdfast://, and several mean quorum://.
//   redis    = "redis://" | "rediss://"
//   cluster  = "redis-cluster://" | "rediss-cluster://"
//   member   = holdfast [ login ] server | redis [ login ] server | [ login ] server
//   login    = [ user ] ":" password "@"        with %40 for @, %3a for :, %2c for a comma, and so on
//   server   = ( host | "[" IPv6 address "]" ) [ ":" port ]
//   setting  = name "=" ( number | text ) | "insecure"        in a text, %26 for & and so on
#include "client/base/address.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "client/base/address_parts.h"
#include "client/base/login.h"
#include "core/base/parse.h"

namespace holdfast::client {

namespace {

constexpr std::string_view kEmbedded = "embedded:";

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

// The schemes of an address that names none.
constexpr Scheme kOneServer{.text = ""}, kSeveralServers{.text = "", .quorum = true};

constexpr std::string_view kServerExamples =
    "; write host or host:port, as in 10.0.0.5:7379, lock.example or [::1]:7379";

// Returns the scheme at the start of the text; null if there is none.
const Scheme* scheme_of(std::string_view text) {
  const auto* const found =
      std::ranges::find_if(kSchemes, [&](const Scheme& known) { return text.starts_with(known.text); });
  return found == kSchemes.end() ? nullptr : found;
}

// Returns the scheme of an address. Rejects an unknown word before "://": it is most likely a mistyped
// scheme, not a host.
const Scheme& scheme_for(std::string_view text) {
  if (const Scheme* named = scheme_of(text)) return *named;
  const std::string_view word = text.substr(0, text.find("://"));
  if (word.size() < text.size() && word.find_first_of(",@:?/[") == std::string_view::npos) {
    refuse(text,
           quoted(text, std::string(word) + "://", "the beginning") +
               " is not a scheme; begin with holdfast:// for one server, quorum:// for several, "
               "redis:// or redis-cluster:// for Redis, with TLS holdfasts://, rediss:// or "
               "rediss-cluster://, or leave the scheme out, as in 10.0.0.5:7379 or host1,host2,host3");
  }
  if (text == kEmbedded.substr(0, kEmbedded.size() - 1))
    refuse(text, "write embedded: with a colon, or holdfast://embedded for a host of that name");
  const std::string_view servers = text.substr(0, text.find('?'));
  return servers.find(',') == std::string_view::npos ? kOneServer : kSeveralServers;
}

// Rejects a host with a character that no resolver accepts. Such characters come from mistakes: "a, b",
// "host/7379".
void check_host(std::string_view text, std::string_view host) {
  const auto odd = std::ranges::find_if(host, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte <= ' ' || (byte < 0x80 && std::string_view("/\\?#&=@;,'\"<>()[]{}|*!$`^~+").find(c) !=
                                              std::string_view::npos);
  });
  if (odd != host.end()) {
    refuse(text, "the host " + quoted(text, host, "of a server") + " has a " +
                     (*odd == ' ' ? "blank" : quoted(text, {&*odd, 1}, "character that no host name has")) +
                     " in it" + std::string(kServerExamples));
  }
}

// Moves the login from `server` to `address`.
void read_login(Address& address, std::string_view text, std::string_view& server) {
  const size_t at = server.rfind('@');
  if (at == std::string_view::npos) return;
  std::string_view password = server.substr(0, at);
  server.remove_prefix(at + 1);
  address.user = decoded(text, next_part(password, ':'));
  address.password = decoded(text, password);
  if (!address.password.empty()) return;
  refuse(
      text,
      "a login is :password@ or user:password@, as in app:password@10.0.0.5:7379; in it %25 stands for %, "
      "%2c for a comma, %2f for /, %3a "
      "for :, %3f for ? and %40 for @");
}

// `number` is the position of the server in the text, from 1.
Address parse_server(std::string_view text, std::string_view server, const Scheme& scheme, size_t number) {
  Address address;
  address.redis = scheme.redis;
  address.tls = scheme.tls;
  if (address.redis) address.port = kRedisPort;
  read_login(address, text, server);
  if (address.redis && server.ends_with("/0")) server.remove_suffix(2);  // as in the URLs of Redis clients
  if (address.redis && server.find('/') != std::string_view::npos)
    refuse(text, "locks are in database 0 only; leave the number out, or write /0");
  const bool bracket = server.starts_with('[');
  const size_t end = bracket ? server.find(']') : server.find(':');
  if (bracket && end == std::string_view::npos)
    refuse(text, "an IPv6 address has no closing bracket; write it as in [::1]:7379");
  address.host = bracket ? server.substr(1, end - 1) : server.substr(0, end);
  const std::string_view rest = end == std::string_view::npos ? "" : server.substr(end + (bracket ? 1 : 0));
  if (address.host.empty()) refuse(text, "a server has no host" + std::string(kServerExamples));
  check_host(text, address.host);
  if (rest.empty()) {
    if (!std::ranges::all_of(address.host, is_digit)) return address;
    refuse(text, quoted(text, address.host, "a server") +
                     " is a port without a host; write host:port, as " + "in 127.0.0.1:7379");
  }
  if (!rest.starts_with(':')) refuse(text, "only :port may follow the closing bracket, as in [::1]:7379");
  const auto port = parse_int_in(rest.substr(1), 1, 65535);
  if (!port) {
    const std::string hidden = "the text behind the host of server " + std::to_string(number);
    refuse(text, quoted(text, rest.substr(1), hidden.c_str()) +
                     " is not a port, which is 1 to 65535, as in 10.0.0.5:7379; an IPv6 address needs "
                     "brackets, as in [::1]:7379, and a login ends with @, as in user:password@host:7379");
  }
  address.port = static_cast<int>(*port);
  return address;
}

// Parses a member of a quorum, which may have a scheme of its own.
Address parse_member(std::string_view text, std::string_view member, size_t number) {
  const Scheme* scheme = scheme_of(member);
  if (scheme != nullptr && !scheme->cluster && !scheme->quorum)
    return parse_server(text, member.substr(scheme->text.size()), *scheme, number);
  if (member.find("//") != std::string_view::npos)
    refuse(text,
           "a server of a quorum is host:port, redis://host:port, or with TLS holdfasts://host:port or "
           "rediss://host:port; in a password %2f stands for /");
  return parse_server(text, member, {}, number);
}

void read_servers(ClientConfig& config, std::string_view text, std::string_view list,
                  const Scheme& scheme) {
  if (list.ends_with(',')) refuse(text, "a server is missing behind the last comma");
  const bool login_for_all = scheme.quorum && scheme_of(list) == nullptr;
  while (true) {
    const std::string_view part = next_part(list, ',');
    const size_t number = config.servers.size() + 1;
    const Address address =
        scheme.quorum ? parse_member(text, part, number) : parse_server(text, part, scheme, number);
    const auto is_it = [&](const Address& other) { return other.text() == address.text(); };
    if (std::ranges::any_of(config.servers, is_it))
      refuse(text, quoted(text, address.text(), "a server") +
                       " is listed twice; a quorum needs different servers");
    config.servers.push_back(address);
    if (list.empty()) break;
  }
  const Address& first = config.servers.front();
  if (login_for_all && !first.password.empty()) log_in(config, {first.user, first.password});
  if (config.servers.size() == 1 || scheme.quorum || scheme.cluster) return;
  refuse(text, scheme.redis ? "redis:// takes one server; write redis-cluster:// for a Redis Cluster, and "
                              "quorum://redis://h1,redis://h2,redis://h3 for independent servers"
                            : "holdfast:// takes one server; write quorum://h1,h2,h3 for several");
}

// Joins the nodes of a cluster to one server. Its login is that before the first node.
void join_cluster(ClientConfig& config, std::string_view text) {
  Address cluster = config.servers.front();
  cluster.cluster = true;
  for (size_t i = 1; i < config.servers.size(); ++i) {
    if (!config.servers[i].password.empty())
      refuse(text, "the login of a cluster must be before its first node");
    cluster.others.push_back(config.servers[i]);
    put(cluster.others.back(), {cluster.user, cluster.password});
  }
  config.servers = {cluster};
}

// Sets the login of the environment. A login in the address has priority.
void log_in_by_environment(ClientConfig& config, std::string_view text) {
  const Login login = environment_login();
  const bool needed = std::ranges::any_of(
      config.servers, [](const Address& a) { return a.password.empty() && !a.embedded; });
  if (!needed || (login.user.empty() && login.password.empty())) return;
  if (login.password.empty())
    refuse(text, "the variable HOLDFAST_USER needs a password in HOLDFAST_PASSWORD, too");
  log_in(config, login);
}

// Rejects names with characters of the other address forms: the user most likely meant such a form.
ClientConfig parse_embedded(std::string_view text) {
  const std::string_view name = text.substr(kEmbedded.size());
  if (name.find('?') != std::string_view::npos) refuse(text, "embedded: takes no settings");
  if (name.find_first_of("/,&") != std::string_view::npos)
    refuse(text, "embedded: is an engine in this program; a name without slash, comma and & may follow it");
  ClientConfig config;
  config.servers.push_back({std::string(name), 0, true});
  return config;
}

}  // namespace

std::string Address::text() const {
  if (embedded) return host.empty() ? "embedded" : "embedded:" + host;
  const bool bracket = host.find(':') != std::string::npos;
  std::string all = (bracket ? "[" + host + "]" : host) + ":" + std::to_string(port);
  for (const Address& other : others) all += "," + other.text();
  return all;
}

std::vector<std::string> ClientConfig::names() const {
  std::vector<std::string> all;
  for (const Address& address : servers) all.push_back(address.text());
  return all;
}

size_t quorum_of(const ClientConfig& config, Mode mode) {
  switch (mode) {
    case Mode::kExclusiveLock:
      return config.write_quorum;
    case Mode::kSharedLock:
      return config.read_quorum;
    case Mode::kCountedLock:
      break;
  }
  return config.replicas;  // with fewer, different sets of servers could together grant more than the limit
}

ClientConfig parse_address(std::string_view text) {
  if (text.starts_with(kEmbedded)) return parse_embedded(text);
  const Scheme& scheme = scheme_for(text);
  std::string_view settings = text.substr(scheme.text.size());
  const std::string_view list = next_part(settings, '?');
  ClientConfig config;
  config.tls.role = TlsRole::kClient;
  read_servers(config, text, list, scheme);
  if (scheme.cluster) join_cluster(config, text);
  read_settings(config, text, settings);
  return config;
}

ClientConfig client_config_of(std::string_view text) {
  ClientConfig config = parse_address(text);
  log_in_by_environment(config, text);
  if (std::ranges::none_of(config.servers, &Address::tls)) return config;
  const TlsContextMade made = TlsContext::make(config.tls);
  if (!made.context) refuse(text, made.why);
  for (Address& address : config.servers) {
    if (!address.tls) continue;
    address.tls_context = made.context;
    for (Address& other : address.others) other.tls_context = made.context;
  }
  return config;
}

}  // namespace holdfast::client
