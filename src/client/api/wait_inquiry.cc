// A round ends when all servers have answered, or after a timeout. A silent server delays the first status
// to 0.85 s after the start of the wait, and to 1.6 s if no server has answered.
#include "client/api/wait_inquiry.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "client/algorithm/ticket_requests.h"
#include "client/algorithm/wait_report.h"
#include "client/api/client_core.h"
#include "client/base/server_error.h"

namespace holdfast {

namespace {

using client::field;
using client::Loop;
using client::Value;
using Kind = Value::Kind;

constexpr DurationMs kBegin{300};          // from the start of a wait; most waits are shorter
constexpr DurationMs kFirstPatience{550};  // if at least one server has answered
constexpr DurationMs kMorePatience{750};   // added if none has: together more than the usual timeout of 1 s
constexpr const char* kSilent = "no answer so far";
constexpr DurationMs kAgain{client::WaitReport::kAgain.count()};
constexpr DurationMs kLongest{client::WaitReport::kLongest.count()};
// The limit for each server, as a shared lock may have very many holders. Further holders have no address
// and no name.
constexpr size_t kAskedConnections = 8;

// Returns the value of a field in a line of CLIENT LIST, "id=7 addr=10.0.0.7:5123 name=web-1 ...".
std::string word_of(const std::string& line, const std::string& name) {
  const size_t at = (" " + line).find(" " + name + "=");
  if (at == std::string::npos) return {};
  const size_t begin = at + name.size() + 1;
  return line.substr(begin, std::min(line.find_first_of(" \r\n", begin), line.size()) - begin);
}

ServerReport report_of(std::string server, const Value& value) {
  if (value.kind == Kind::kLost) return {std::move(server), Outcome::kUnreachable, 0, value.text};
  if (value.kind == Kind::kError)
    return {std::move(server), Outcome::kRefused, 0, value.text, client::server_error_of(value)};
  return {std::move(server), Outcome::kOk, 0, {}};
}

}  // namespace

WaitInquiry::WaitInquiry(ClientCore& client, std::string key, std::vector<size_t> servers,
                         std::function<std::string()> owner, OnStatus on_status)
    : client_(client),
      key_(std::move(key)),
      servers_(std::move(servers)),
      owner_(std::move(owner)),
      report_(std::move(on_status)),
      seen_(servers_.size()),
      timer_(client.loop(), [this] { on_time(); }) {
  begin();
}

void WaitInquiry::begin() {
  pause_ = kAgain;
  timer_.set(Loop::now() + kBegin);
}

void WaitInquiry::record_queue() {
  if (open_ == 0 && !first_ && !reached_) begin();
}

void WaitInquiry::on_time() {
  if (open_ == 0) return ask_all();
  const bool any =
      std::ranges::any_of(seen_, [](const Seen& s) { return s.report.outcome == Outcome::kOk; });
  if (any || std::exchange(late_, true)) return report();
  timer_.set(Loop::now() + kMorePatience);
}

void WaitInquiry::ask_all() {
  ++round_;
  late_ = false;
  open_ = servers_.size();
  const DurationMs patience =
      first_ ? kFirstPatience : std::max(kFirstPatience, client_.config().server_timeout);
  timer_.set(Loop::now() + patience);
  for (size_t i = 0; i < servers_.size(); ++i) {
    seen_[i].info = {Kind::kNull, 0, {}, {}};
    seen_[i].connections.clear();
    seen_[i].report =
        report_of(client_.config().servers[servers_[i]].text(), {Kind::kLost, 0, kSilent, {}});
    ask(i, {"LOCKS", "INFO", key_}, &WaitInquiry::receive_info);
  }
}

void WaitInquiry::ask(size_t i, const std::vector<std::string>& argv,
                      void (WaitInquiry::*receive)(size_t, Value)) {
  client_.link(servers_[i])
      .ask(argv, client_.config().server_timeout,
           [life = weak_from_this(), round = round_, i, receive](const Value& value) {
             const auto self = life.lock();
             if (self && round == self->round_) (self.get()->*receive)(i, value);
           });
}

void WaitInquiry::receive_info(size_t i, Value value) {
  Seen& seen = seen_[i];
  seen.report = report_of(seen.report.server, value);
  if (seen.report.outcome == Outcome::kOk) seen.info = std::move(value);
  std::vector<std::string> argv{"CLIENT", "LIST", "ID"};
  for (const Value& holder : field(seen.info, "holders").elements) {
    const Value& id = field(holder, "client");
    if (id.kind == Kind::kInteger && argv.size() < 3 + kAskedConnections)
      argv.push_back(std::to_string(id.integer));
  }
  if (argv.size() == 3 || seen.hides_connections) return note_answered();
  ask(i, argv, &WaitInquiry::receive_connections);
}

void WaitInquiry::receive_connections(size_t i, Value value) {
  Seen& seen = seen_[i];
  seen.hides_connections = value.kind == Kind::kError;  // a right is missing, so do not ask again
  const std::string text = value.kind == Kind::kBulk ? std::move(value.text) : std::string();
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    seen.connections[std::atoll(word_of(line, "id").c_str())] = line;
    begin = end + 1;
  }
  note_answered();
}

void WaitInquiry::note_answered() {
  if (--open_ == 0) report();
}

void WaitInquiry::report() {
  ++round_;  // ignore later answers to this round
  open_ = 0;
  first_ = false;
  timer_.set(Loop::now() + pause_);
  pause_ = {std::min(2 * pause_.count, kLongest.count)};
  const WaitStatus now = status();
  reached_ = std::ranges::any_of(
      now.servers, [](const ServerReport& report) { return report.outcome != Outcome::kUnreachable; });
  report_(now);
}

// A vote for this wait, or for an attempt before it, is no holder that the wait waits for.
bool WaitInquiry::is_own(std::string_view owner) const {
  const std::string own = owner_();
  const std::string_view slot = client::slot_of(own);
  return !slot.empty() && client::slot_of(owner) == slot;
}

WaitStatus WaitInquiry::status() const {
  WaitStatus all;
  for (const Seen& seen : seen_) {
    all.servers.push_back(seen.report);
    all.delay = std::max(all.delay, milliseconds(field(seen.info, "delay").integer));
    for (const Value& holder : field(seen.info, "holders").elements) {
      const std::string& owner = field(holder, "owner").text;
      if (is_own(owner)) continue;
      const auto same = std::ranges::find(all.holders, owner, &HolderStatus::owner);
      if (same != all.holders.end()) {
        same->servers.push_back(seen.report.server);
        continue;
      }
      HolderStatus one;
      one.owner = owner;
      one.held = milliseconds(field(holder, "held").integer);
      if (const int64_t left = field(holder, "ttl").integer; left >= 0) one.left = milliseconds(left);
      one.connection = field(holder, "client").integer;
      if (const auto line = seen.connections.find(one.connection); line != seen.connections.end()) {
        one.address = word_of(line->second, "addr");
        one.name = word_of(line->second, "name");
      }
      one.servers = {seen.report.server};
      all.holders.push_back(std::move(one));
    }
    const auto& waiters = field(seen.info, "waiters").elements;
    const auto ours =
        std::ranges::find_if(waiters, [&](const Value& w) { return field(w, "owner").text == owner_(); });
    if (ours == waiters.end()) continue;
    all.place = static_cast<size_t>(ours - waiters.begin()) + 1;
    all.waiters = waiters.size();
  }
  return all;
}

}  // namespace holdfast
