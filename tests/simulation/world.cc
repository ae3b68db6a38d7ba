// Plays steps on engine and model, and compares their output.
#include "world.h"

#include <algorithm>
#include <utility>

#include "../transcripts/reply_text.h"
#include "../unit/state_text.h"

namespace holdfast::simulation {
using transcript::in_quotes;

namespace {

// Finds and removes the expected frame that matches `reply`. Returns false if no frame that may come now
// does.
bool take_match(std::vector<Frame>& expected, std::string_view reply) {
  if (expected.empty()) return false;
  std::set<std::string> topics;
  const int group = expected.front().group;
  for (size_t at = 0; at < expected.size() && expected[at].group == group; ++at) {
    if (!topics.insert(expected[at].topic).second) continue;
    if (expected[at].matches(reply)) {
      expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(at));
      return true;
    }
    if (group == 0) return false;
  }
  return false;
}

// Returns both texts; long ones from shortly before their first difference.
std::string difference(std::string_view received, std::string_view expected) {
  const auto differ = std::mismatch(received.begin(), received.end(), expected.begin(), expected.end());
  const auto same = static_cast<size_t>(differ.first - received.begin());
  const size_t from = received.size() < 200 || same < 40 ? 0 : same - 40;
  return in_quotes(received.substr(from, 200)) + ", expected " + in_quotes(expected.substr(from, 200));
}

Config config_of_one_boot(const Profile& profile) {
  Config config = profile.config();
  config.boot_id = "boot";
  return config;
}

}  // namespace

World::World(const Profile& profile)
    : profile_(profile),
      engine_([&] {
        Config config = config_of_one_boot(profile_);
        config.random = [this](std::span<uint8_t> bytes) {
          for (uint8_t& byte : bytes) drawn_ += static_cast<char>(byte = next_random_++);
        };
        return config;
      }()),
      twin_(config_of_one_boot(profile_)),
      model_(profile_.config()) {
  engine_.keep_journal();
  open(kProbe);
}

std::string World::open(int conn) {
  const std::string peer = "127.0.0.1:" + std::to_string(50000 + conn);
  conns_[conn] = engine_.open(peer, "127.0.0.1:7379", now());
  model_.open(conns_[conn].serial, 2, peer);
  watcher_.open(conns_[conn].serial);
  record_line("connect " + conn_name(conn));
  return "";
}

Args World::resolved(const Args& args) const {
  Args out = args;
  for (std::string& arg : out) {
    if (arg.size() != 2 || arg[0] != '@') continue;
    const int conn = arg[1] - '0';
    arg = is_open(conn) ? std::to_string(serial(conn)) : "99999";
  }
  return out;
}

std::string World::command(int conn, const Args& symbolic) {
  const Args args = resolved(symbolic);
  record_line(conn_name(conn) + " > " + command_line(args));
  const std::vector<std::string_view> argv(args.begin(), args.end());
  drawn_.clear();
  asked_ = conn;
  watcher_.asked(serial(conn), args);
  engine_.apply(conns_.at(conn), argv, now(), fx_);
  model_.offer_random(drawn_);
  model_.apply(serial(conn), args, now());
  return "";
}

std::string World::tick() {
  record_line("tick");
  ticked_ms_ = now_ms_;
  const std::optional<TimeMs> before = engine_.next_deadline();
  engine_.tick(now(), fx_);
  model_.tick(now());
  const bool expected = before && is_due(*before, now().mono);
  if (!fx_.empty() && !expected) return "the loop would have slept past what this tick did";
  for (int more = 0; more < 1000000; ++more) {  // FLUSHALL frees memory step by step
    const std::optional<TimeMs> after = engine_.next_deadline();
    if (!after || !is_due(*after, now().mono)) return "";
    engine_.tick(now(), fx_);
  }
  return "the loop would spin after this tick";
}

std::string World::act(const Step& step) {
  switch (step.kind) {
    case Step::Kind::kOpen:
      return open(step.conn);
    case Step::Kind::kDrop: {
      record_line("drop " + conn_name(step.conn));
      const ConnId id = conns_.at(step.conn);
      conns_.erase(step.conn);
      watcher_.dropped(id.serial);
      engine_.drop(id, now(), fx_);
      model_.drop(id.serial, now());
      return "";
    }
    case Step::Kind::kCommand:
      return command(step.conn, step.args);
    case Step::Kind::kPass:
      now_ms_ += step.pass_ms;
      return "";
    case Step::Kind::kTick:
      return tick();
  }
  return "";
}

// A server's loop runs due work before the first request of an iteration.
bool World::step_ticks_first(const Step& step) const {
  if (!profile_.ticks_first || now_ms_ == ticked_ms_) return false;
  return step.kind == Step::Kind::kCommand || step.kind == Step::Kind::kDrop;
}

std::string World::play(const Step& step) {
  if (step.kind == Step::Kind::kOpen && is_open(step.conn)) return "";
  if (step.kind == Step::Kind::kDrop && !is_open(step.conn)) return "";
  if (step.kind == Step::Kind::kCommand && !may_send(step.conn)) return "";
  if (step.kind == Step::Kind::kCommand && step.args[0] == "HELLO" && model_.in_multi(serial(step.conn)))
    return "";
  std::map<int, bool> blocked_before;
  for (const auto& [conn, id] : conns_) blocked_before[conn] = engine_.blocked(id);
  std::string wrong = step_ticks_first(step) ? tick() : "";
  if (wrong.empty()) wrong = act(step);
  if (model_.is_undetermined()) return "";
  if (wrong.empty()) wrong = check_effects(blocked_before);
  if (wrong.empty()) wrong = compare();
  if (wrong.empty() && step.kind != Step::Kind::kPass && step.kind != Step::Kind::kOpen)
    wrong = check_deadline();
  engine_.check_invariants();
  if (wrong.empty()) wrong = replay();
  fx_.clear();
  if (wrong.empty() && profile_.look_always && step.kind != Step::Kind::kPass) wrong = look(step);
  return wrong;
}

// Replays the step's journal records on an engine that has seen nothing else and whose wall clock changes
// again and again. It must reach the same state.
std::string World::replay() {
  const Now elsewhere = now().with_ahead_ms(now_ms_ % 7 * 100000);
  const std::string failure = twin_.replay(engine_.journal_records(), elsewhere);
  engine_.clear_journal_records();
  if (!failure.empty()) return "the journal cannot be replayed: " + failure;
  twin_.check_invariants();
  const std::string kept = state_text(engine_, now());
  const std::string replayed = state_text(twin_, now());
  return kept == replayed ? "" : "replayed: " + difference(replayed, kept);
}

// Dirty are all connections with output. Woken are exactly those that stopped waiting, each once. Both
// lists may also name a connection that disconnected in the same loop iteration.
std::string World::check_effects(const std::map<int, bool>& blocked_before) {
  for (const auto& [conn, id] : conns_) {
    const auto dirty = std::count(fx_.dirty.begin(), fx_.dirty.end(), id);
    if (dirty > 1 || (dirty == 0 && !engine_.output(id).empty())) {
      return conn_name(conn) + " stands in Effects::dirty " + std::to_string(dirty) + " times";
    }
    const auto before = blocked_before.find(conn);
    const bool woken = before != blocked_before.end() && before->second && !engine_.blocked(id);
    const auto wakes = std::count(fx_.wakes.begin(), fx_.wakes.end(), id);
    if (wakes != (woken ? 1 : 0)) {
      return conn_name(conn) + " stands in Effects::wakes " + std::to_string(wakes) + " times";
    }
  }
  return fx_.closes.empty() ? "" : "a connection is to close for no reason";
}

// The loop must not sleep past an event that causes output for a connection.
std::string World::check_deadline() const {
  const std::optional<TimeMs> event = model_.next_visible_event();
  if (!event) return "";
  const std::optional<TimeMs> next = engine_.next_deadline();
  if (next && *next <= *event) return "";
  return "something is due at " + std::to_string(event->count - kStartMs) + ", but the loop sleeps until " +
         (next ? std::to_string(next->count - kStartMs) : "a request comes");
}

std::string World::compare_conn(int conn) {
  const ConnId id = conns_.at(conn);
  std::vector<Frame> expected = model_.take_output(id.serial);
  Buffer& output = engine_.output(id);
  const std::string received(output.view());
  output.consume(output.size());
  if (conn == kProbe) seen_ = received;
  std::string wrong;
  for (std::string_view rest = received; !rest.empty();) {
    const size_t length = reply_length(rest);
    if (length == 0) return conn_name(conn) + " received half a reply: " + in_quotes(rest);
    const std::string_view reply = rest.substr(0, length);
    rest.remove_prefix(length);
    record_reply(conn, reply);
    watcher_.received(id.serial, reply);
    if (!wrong.empty() || take_match(expected, reply)) continue;
    wrong = conn_name(conn) + " received " +
            (expected.empty() ? in_quotes(reply) + ", expected nothing"
                              : difference(reply, expected.front().text()));
  }
  if (wrong.empty() && !expected.empty()) {
    wrong = conn_name(conn) + " did not receive " + in_quotes(expected.front().text());
  }
  if (wrong.empty() && model_.blocked(id.serial) != engine_.blocked(id)) {
    wrong = conn_name(conn) + (engine_.blocked(id) ? " is blocked" : " is not blocked");
  }
  return wrong.empty() ? watcher_.check_replies(id.serial, engine_.blocked(id)) : wrong;
}

std::string World::compare() {
  std::string wrong;
  for (const auto& [conn, id] : conns_) {
    const std::string found = compare_conn(conn);
    if (wrong.empty()) wrong = found;
    const bool began = conn == asked_ && engine_.blocked(id);
    if (began && transcript_ != nullptr) *transcript_ += "     " + conn_name(conn) + " < (waits)\n";
  }
  asked_ = kNoConn;
  const std::string tokens = model_.settle_tokens();
  return wrong.empty() ? tokens : wrong;
}

// Reads all visible state of each key, and lets the watcher judge it independently.
std::string World::look(const Step& step) {
  std::set<KeyId> all;
  for (const auto& [id, state] : model_.keys()) all.insert(id);
  std::map<KeyId, std::string> infos;
  std::string* const transcript = std::exchange(transcript_, nullptr);
  std::string wrong;
  for (const KeyId& id : all) {
    for (const Args& args : {Args{"SELECT", std::to_string(id.first)}, Args{"LOCKS", "INFO", id.second}}) {
      command(kProbe, args);
      fx_.clear();
      wrong = compare();
      if (!wrong.empty()) wrong = "after it, " + command_line(args) + ": " + wrong;
      if (!wrong.empty()) break;
    }
    infos[id] = seen_;
    if (!wrong.empty()) break;
  }
  transcript_ = transcript;
  return wrong.empty() ? watcher_.judge(step, infos, now_ms_) : wrong;
}

void World::record_line(const std::string& what) {
  if (transcript_ == nullptr) return;
  if (recorded_ms_ != now_ms_) *transcript_ += "@" + std::to_string(now_ms_ - kStartMs) + " ";
  recorded_ms_ = now_ms_;
  *transcript_ += what + "\n";
}

void World::record_reply(int conn, std::string_view reply) {
  if (transcript_ == nullptr) return;
  *transcript_ += "     " + conn_name(conn) + " < " + transcript::ReplyText(reply, false).next() + "\n";
}

}  // namespace holdfast::simulation
