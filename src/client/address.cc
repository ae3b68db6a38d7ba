// The grammar:
//   place    = ( "holdfast://" server | "quorum://" server { "," server } ) [ "?" setting { "&" setting } ]
//            | "embedded:" [ name ]
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

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw std::invalid_argument("\"" + std::string(text) + "\": " + why);
}

// Cuts off what stands before the first `separator`, all where there is none.
std::string_view next_part(std::string_view& rest, char separator) {
  const size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

Address parse_server(std::string_view text, std::string_view server) {
  Address address;
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

void read_servers(Place& place, std::string_view text, std::string_view list, bool several) {
  if (list.ends_with(',')) refuse(text, "a server is missing behind the last comma");
  while (true) {
    const Address address = parse_server(text, next_part(list, ','));
    if (std::ranges::find(place.servers, address) != place.servers.end())
      refuse(text, address.text() + " is there twice; a quorum needs different servers");
    place.servers.push_back(address);
    if (list.empty()) break;
  }
  if (!several && place.servers.size() > 1)
    refuse(text, "holdfast:// has one server; several are quorum://");
}

struct Quorums {
  std::optional<int64_t> replicas, write, read;
};

void read_setting(Place& place, Quorums& quorums, std::string_view text, std::string_view setting) {
  std::string_view value = setting;
  const std::string name(next_part(value, '='));
  const auto number = parse_int_in(value, 1, kMaxMs);
  if (!number) refuse(text, name + " must be a number of at least 1");
  const std::array<std::pair<std::string_view, DurationMs*>, 3> times{
      {{"timeout", &place.server_timeout}, {"min-wait", &place.min_wait}, {"max-wait", &place.max_wait}}};
  const std::array<std::pair<std::string_view, std::optional<int64_t>*>, 3> numbers{
      {{"rfactor", &quorums.replicas}, {"wquorum", &quorums.write}, {"rquorum", &quorums.read}}};
  for (const auto& [known, time] : times) {
    if (name == known) return static_cast<void>(*time = {*number});
  }
  for (const auto& [known, quorum] : numbers) {
    if (name == known) return static_cast<void>(*quorum = *number);
  }
  refuse(text, "there is no setting \"" + name +
                   "\", only timeout, min-wait, max-wait, rfactor, wquorum and rquorum");
}

// Exclusive holds must meet one another, and shared ones must meet exclusive ones, on at least one server.
void settle_quorums(Place& place, const Quorums& quorums, std::string_view text) {
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
  return (bracket ? "[" + host + "]" : host) + ":" + std::to_string(port);
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
  constexpr std::string_view kOne = "holdfast://";
  constexpr std::string_view kSeveral = "quorum://";
  if (text.starts_with(kEmbedded)) return parse_embedded(text);
  const bool several = text.starts_with(kSeveral);
  if (!several && !text.starts_with(kOne)) {
    refuse(text,
           "begin with holdfast://host:port for one server, quorum://host1,host2,host3 for several, or "
           "embedded: for none but this program");
  }
  std::string_view settings = text.substr(several ? kSeveral.size() : kOne.size());
  const std::string_view list = next_part(settings, '?');
  Place place;
  Quorums quorums;
  read_servers(place, text, list, several);
  while (!settings.empty()) read_setting(place, quorums, text, next_part(settings, '&'));
  if (place.min_wait > place.max_wait) refuse(text, "min-wait is more than max-wait");
  settle_quorums(place, quorums, text);
  return place;
}

}  // namespace holdfast::client
