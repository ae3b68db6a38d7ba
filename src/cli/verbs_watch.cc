// holdfast watch. The loop's thread prints. It blocks if standard output is not read, and the server limits
// the output that accumulates. INT and TERM have their default action.
#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "cli/output.h"
#include "cli/servers.h"
#include "cli/show.h"
#include "cli/status.h"
#include "cli/verbs.h"
#include "client/algorithm/wait_report.h"
#include "client/base/login.h"

namespace holdfast {
namespace {

constexpr std::string_view kChannel = "__lock__:";

// Returns the event as JSON. `key` is the lock's name with --match. An owner may contain blanks; the event
// and the token do not.
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

// Prints the events on the loop's thread. It ends if standard output fails, or if every server rejects the
// login.
class Watch {
 public:
  Watch(const Servers& servers, const Call& call, size_t count)
      : servers_(servers), json_(call.json), quiet_(call.lock.quiet), left_(count) {}

  // `key` is the lock's name with --match.
  void receive(size_t server, const std::optional<std::string>& key, const std::string& message) {
    if (over_) return;
    reports_.erase(server);
    refused_.erase(server);
    if (!print_event(json_, servers_.name(server), key, message.empty() ? "watching" : message))
      end(kNoOutput);
  }
  void lose(size_t server, const std::string& why) {
    const bool refused = client::is_login_refusal(why);
    const std::string news = client::with_advice(why) + (refused ? "" : "; retrying");
    if (over_ || (refused && !refused_.insert(server).second)) return;
    if (quiet_ && !refused) return;
    if (const auto text = reports_[server].note(news, milliseconds(client::Loop::now().count)))
      fail(0, "cannot watch {}: {}", servers_.name(server), printable(*text));
    if (refused && refused_.size() == left_) end(kUnavailable);
  }
  // Waits for the end and returns the exit status.
  int status() { return status_.get_future().get(); }

 private:
  void end(int status) {
    if (!std::exchange(over_, true)) status_.set_value(status);
  }

  const Servers& servers_;
  const bool json_;
  const bool quiet_;  // no reports of unreachable servers while it runs
  const size_t left_;
  std::map<size_t, client::WaitReport> reports_;  // for unreachable servers
  std::set<size_t> refused_;
  bool over_ = false;
  std::promise<int> status_;
};

}  // namespace

int verb_watch(const Call& call) {
  Servers servers(call.servers);
  const std::vector<size_t> asked = call.match ? servers.all() : servers.of_key(call.lock.name);
  const std::vector<Answer> there = servers.ask(asked, {"PING"});
  const bool none = std::none_of(there.begin(), there.end(), [](const Answer& a) { return a.good(); });
  for (const Answer& answer : there) {
    if (!answer.good() && (none || !call.lock.quiet))
      fail(0, "{}: {}", answer.server, printable(answer.why()));
  }
  if (none) return kUnavailable;
  const auto watch = std::make_shared<Watch>(servers, call, asked.size());
  const auto lost = [watch](size_t server, const std::string& why) { watch->lose(server, why); };
  const std::string channel = std::string(kChannel) + call.match.value_or(call.lock.name);
  if (!call.match) {
    servers.watch(
        asked, channel,
        [watch](size_t server, const std::string& message) { watch->receive(server, {}, message); }, lost);
  } else {  // the start of a subscription comes with the pattern, not with a lock
    servers.watch_pattern(
        asked, channel,
        [watch](size_t server, const std::string& of, const std::string& message) {
          watch->receive(server, message.empty() ? std::nullopt : std::optional(of.substr(kChannel.size())),
                         message);
        },
        lost);
  }
  return watch->status();
}

}  // namespace holdfast
