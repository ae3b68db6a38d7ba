// holdfast watch. The loop's thread prints: where nobody reads, it stands still, and the server limits what
// gathers. INT and TERM end the process as they would any other.
#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <memory>
#include <optional>
#include <string_view>

#include "cli/output.h"
#include "cli/servers.h"
#include "cli/show.h"
#include "cli/status.h"
#include "cli/verbs.h"

namespace holdfast {
namespace {

constexpr std::string_view kChannel = "__lock__:";

// `key`: of a lock that --match found. An owner may have blanks; the event and the token have none.
Json event_of(const std::string& server, const std::optional<std::string>& key,
              const std::string& message) {
  Json row{{"time", time_now()}, {"server", server}};
  if (key) row["key"] = *key;
  const size_t end = std::min(message.find(' '), message.size());
  row["event"] = message.substr(0, end);
  if (end == message.size()) return row;
  std::string owner = message.substr(end + 1);
  if (const size_t blank = owner.rfind(' '); row["event"] == "granted" && blank != std::string::npos) {
    row["owner"] = owner.substr(0, blank);
    row["token"] = Json::parse(owner.substr(blank + 1), nullptr, false);
  } else {
    row["owner"] = owner;
  }
  return row;
}

bool print_event(bool json, const std::string& server, const std::optional<std::string>& key,
                 const std::string& message) {
  if (json) return print_json(event_of(server, key, message));
  print("{} {} {}{}\n", time_now(), server, key ? printable(*key, true) + " " : "", printable(message));
  return flush();
}

}  // namespace

int verb_watch(const Call& call) {
  Servers servers(call.servers);
  const std::vector<size_t> asked = call.match ? servers.all() : servers.of_key(call.lock.name);
  const std::vector<Answer> there = servers.ask(asked, {"PING"});
  for (const Answer& answer : there) {
    if (!answer.good()) fail(0, "{}: {}", answer.server, printable(answer.why()));
  }
  if (std::none_of(there.begin(), there.end(), [](const Answer& a) { return a.good(); }))
    return kUnavailable;
  const auto unread = std::make_shared<std::promise<void>>();
  const auto over = std::make_shared<bool>(false);
  const auto show = [&servers, json = call.json, unread, over](
                        size_t server, const std::optional<std::string>& key, const std::string& message) {
    if (*over) return;
    *over = !print_event(json, servers.name(server), key, message.empty() ? "watching" : message);
    if (*over) unread->set_value();
  };
  const std::string channel = std::string(kChannel) + call.match.value_or(call.lock.name);
  if (!call.match) {
    servers.watch(asked, channel,
                  [show](size_t server, const std::string& message) { show(server, {}, message); });
  } else {  // the beginning is told of the pattern, not of a lock
    servers.watch_pattern(
        asked, channel, [show](size_t server, const std::string& of, const std::string& message) {
          show(server, message.empty() ? std::nullopt : std::optional(of.substr(kChannel.size())), message);
        });
  }
  unread->get_future().wait();
  return kNoOutput;
}

}  // namespace holdfast
