// The steps, and what must be true after each.
#include "server_world.h"

#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "core/engine/engine_parts.h"
#include "durations.h"

namespace holdfast::simulation {
namespace {

// Whether the engine shows a state between two requests. A deferred script may have changed some of it.
bool is_between_requests(Engine& engine) {
  const Journal& journal = engine.state().journal;
  return engine.at_rest() ||
         (journal.out.size() == journal.settled && !journal.pending && journal.large.empty());
}

}  // namespace

ServerWorld::ServerWorld(uint64_t seed) : disk_(seed * 7 + 1) {
  scheduler_.spend(kFirstUs);
  Machine& machine = Machine::get();
  machine = Machine{};
  machine.dice = Dice(seed * 7 + 2);
  machine.booted_us = kFirstUs - 100 * kSecondUs;
}

ServerWorld::~ServerWorld() {
  if (process_ != nullptr) end_at("kill", 0);
}

std::string ServerWorld::play(const ScriptStep& step) {
  ++counts_.steps;
  act(step.words);
  run_for(step.run_us);
  counts_.rare = combinations_.counts();
  counts_.disk_operations = disk_.operations();
  counts_.simulated_s = static_cast<uint64_t>((scheduler_.now_us() - kFirstUs) / kSecondUs);
  return wrong_;
}

void ServerWorld::act(const std::vector<std::string>& words) {
  if (words.empty()) return;
  const std::string& verb = words[0];
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  if (verb == "start") begin_process(rest);
  if (verb == "send" && rest.size() > 1)
    send(static_cast<int>(number(rest, 0)), {rest.begin() + 1, rest.end()});
  for (const char* name : {"raw", "cut", "room", "read", "reset"}) {
    if (verb == name) act_on_client(verb, rest);
  }
  if (verb == "drop") drop(static_cast<int>(number(rest, 0)));
  if (verb == "kill" || verb == "crash") end_by(words);
  if (verb == "disk") disk_fault(rest);
  if (verb == "folder" && !rest.empty()) folder(rest[0]);
  if (verb == "check") check();
  if (verb == "term") terminate();
  if (verb == "cpu") Machine::get().stopwatch_us = static_cast<int64_t>(number(rest, 0));
  if (verb == "wall" && !rest.empty()) {
    Machine::get().wall_ahead_ms += std::strtoll(rest[0].c_str(), nullptr, 10);
    oracle_.wall_set();
  }
}

// At the end of a stop the server has no handler: the signal kills the process.
void ServerWorld::terminate() {
  if (process_ == nullptr) return;
  if (told_to_stop_us_ != 0 && process_->engine() != nullptr && Loop::get().signals.empty())
    return end_at("kill", 0);
  combinations_.note_end(process_->engine());
  Loop::get().raise_signal(SIGTERM);
  if (told_to_stop_us_ == 0) told_to_stop_us_ = scheduler_.now_us();
}

void ServerWorld::begin_process(const std::vector<std::string>& options) {
  if (process_ != nullptr) return;
  ++counts_.starts;
  if (disk_.files().folder_removed()) {  // the server makes the folder if it is missing
    disk_.files().restore_folder();
    static_cast<void>(disk_.files().reopen_folder());
  }
  foreign_.clear();
  Loop::get().begin_process(loop_events());
  watch_disk();
  std::vector<std::string> arguments;
  for (size_t i = 0; i + 1 < options.size(); i += 2) {
    arguments.push_back("--" + options[i]);
    arguments.push_back(options[i + 1]);
  }
  process_ = std::make_unique<Process>(arguments);
  oracle_.begin(process_->options(), scheduler_.now_us());
  fault_since_start_ = disk_fails();
  if (fault_since_start_) oracle_.trouble();
  started_us_ = scheduler_.now_us();
  told_to_stop_us_ = 0;
  stop_wanted_ = false;
  last_signature_ = 0;
  fsync_.clear();
  restored_.reset();
}

LoopEvents ServerWorld::loop_events() {
  LoopEvents events;
  events.before_poll = [this] { before_poll(); };
  events.before_send = [this] {
    if (process_->options().appendonly != "yes") observe();
  };
  events.sent = [this](const Socket& socket) { sent(socket); };
  return events;
}

// The journal's frame has the state of this moment, and so has a new snapshot.
void ServerWorld::watch_disk() {
  DiskEvents events;
  events.before = [this](DiskWork work, const std::string& name) {
    note_restored();
    const bool snapshot = name == "dump.rdb.gz.tmp" || name == "dump.rdb.tmp";
    if (work == DiskWork::kWrite && name.starts_with("journal.")) observe_written();
    if (work != DiskWork::kCreate || !snapshot || !oracle_.is_loaded()) return;
    observe();
    oracle_.snapshot_begins();
  };
  events.after = [this](DiskWork work, const std::string& name) {
    if (work == DiskWork::kRename && name.starts_with("dump.rdb")) oracle_.snapshot_placed();
    if (work == DiskWork::kSyncFolder) oracle_.folder_synced();
  };
  disk_.watch(std::move(events));
}

// A start that has read its files may still wait for the disk. Meanwhile a hold may end, and requests may
// come that change the state.
void ServerWorld::note_restored() {
  if (restored_ || oracle_.is_loaded() || process_ == nullptr || process_->engine() == nullptr) return;
  if (!process_->engine()->state().journal.on) return;  // it still reads
  restored_ = view_of(*process_->engine(), Machine::get().true_time());
}

void ServerWorld::observe() {
  if (process_ == nullptr || !oracle_.is_loaded() || process_->engine() == nullptr) return;
  Engine& engine = *process_->engine();
  if (Loop::get().prepares.empty()) return;  // the server's stop drops its clients
  if (!is_between_requests(engine)) return;
  fail(oracle_.observe(view_of(engine, Machine::get().true_time()), scheduler_.now_us()));
  engine.state().conns.for_each([&](const Conn& c) {
    if (c.out.size() == 0) return;
    for (const auto& [id, client] : clients_) {
      if (client->socket().serial == c.id.serial)
        oracle_.made_replies(c.id.serial, client->socket().taken_bytes + c.out.size());
    }
  });
}

// The journal gets the state from before a deferred script.
void ServerWorld::observe_written() {
  observe();
  const bool runs = process_ != nullptr && oracle_.is_loaded() && process_->engine() != nullptr;
  if (runs && !is_between_requests(*process_->engine())) oracle_.unseen();
}

void ServerWorld::before_poll() {
  if (process_ == nullptr || !process_->loaded()) return;
  note_options();
  Engine& engine = *process_->engine();
  if (!oracle_.is_loaded()) {
    const View now = view_of(engine, Machine::get().true_time());
    fail(oracle_.loaded(std::exchange(restored_, std::nullopt).value_or(now), scheduler_.now_us()));
    fail(oracle_.check_wait(recovery_left_ms()));
    return observe();
  }
  uint64_t signature = engine.largest_token() + counts_.requests * 1000;
  for (const auto& keys : engine.state().dbs) signature = signature * 31 + keys->live();
  if (std::exchange(last_signature_, signature) != signature) observe();
}

int64_t ServerWorld::recovery_left_ms() {
  return process_->engine()->availability().recovering_until.count - Machine::get().now().mono.count;
}

void ServerWorld::sent(const Socket& socket) {
  if (halt_after_replies_ > 0 && --halt_after_replies_ == 0) scheduler_.halt();
  const bool refusing = !process_->engine()->availability().refusal.empty();
  // Without a number the server has rejected the client: that text promises nothing, and waits for no sync.
  if (socket.serial != 0) oracle_.sent(socket.serial, socket.sent_bytes, refusing);
  for (auto& [id, client] : clients_) {
    if (&client->socket() == &socket) client->read([this](const Grant& grant) { oracle_.told(grant); });
  }
}

Client& ServerWorld::connected(int id) {
  std::unique_ptr<Client>& client = clients_[id];
  if (client != nullptr && client->is_open()) return *client;
  auto socket = std::make_shared<Socket>();
  Loop::get().connect(socket);
  client = std::make_unique<Client>(std::move(socket));
  return *client;
}

void ServerWorld::send(int id, const std::vector<std::string>& words) {
  if (process_ == nullptr) return;
  ++counts_.requests;
  combinations_.note_request(words);
  connected(id).send(words);
  Loop::get().poke();
  if (strcasecmp(words[0].c_str(), "SHUTDOWN") != 0) return;
  stop_wanted_ = true;
  combinations_.note_end(process_->engine());
  for (const std::string& word : words) {
    if (strcasecmp(word.c_str(), "NOSAVE") == 0) oracle_.stop_without_save();
  }
}

void ServerWorld::drop(int id) {
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;
  found->second->socket().client_ended = true;
  Loop::get().poke();
}

void ServerWorld::run_for(int64_t us) {
  const int64_t until_us = scheduler_.now_us() + us;
  // In pieces, so that limits are checked on the way.
  while (scheduler_.now_us() < until_us && wrong_.empty()) {
    scheduler_.run_until(process_ == nullptr ? until_us
                                             : std::min(until_us, scheduler_.now_us() + 10 * kSecondUs));
    if (scheduler_.take_halt()) continue;
    note_end();
    check_limits();
  }
  note_end();
}

// Ends the process before an operation on the disk, or behind a reply.
void ServerWorld::end_by(const std::vector<std::string>& words) {
  const uint64_t count = number(words, 1);
  if (process_ != nullptr && count > 0) {
    words.back() == "replies" ? void(halt_after_replies_ = count) : disk_.halt_before(count);
    scheduler_.run_until(scheduler_.now_us() + 2 * kSecondUs);
    scheduler_.take_halt();
    disk_.halt_before(0);
    halt_after_replies_ = 0;
    note_end();
  }
  end_at(words[0], number(words, 2));
}

void ServerWorld::end_at(const std::string& kind, uint64_t seed) {
  if (process_ != nullptr) combinations_.note_end(process_->engine());
  const bool crashes = kind == "crash";
  if (process_ == nullptr && !crashes) return;
  check_foreign();
  ++(crashes ? counts_.crashes : counts_.kills);
  Loop::get().die();
  if (crashes) {
    disk_.files().crash(seed);
  } else {
    disk_.files().kill();
  }
  scheduler_.drain();
  if (process_ != nullptr) note_options();
  oracle_.ended(crashes ? End::kCrashed : End::kKilled, scheduler_.now_us(), disk_.sync_us());
  process_.reset();
  clients_.clear();
  if (folder_changed_) oracle_.forget();
  if (crashes) Machine::get().reboot();
}

// A snapshot would have a part of the changes of a script. So without a journal the stop keeps none of
// them.
bool ServerWorld::in_script(const std::string& failure) const {
  return process_->options().appendonly != "yes" &&
         failure.ends_with("a script that has written has not ended");
}

// The process may have ended by itself.
void ServerWorld::note_end() {
  if (process_ == nullptr || !process_->ended()) return;
  check_foreign();
  const std::string failure = process_->failure();
  const bool asked = told_to_stop_us_ != 0 || stop_wanted_;
  if (!oracle_.is_loaded() && !failure.empty() && !fault_since_start_) fail("the start failed: " + failure);
  if (oracle_.is_loaded() && !asked) fail("the server ended by itself: " + failure);
  if (oracle_.is_loaded() && asked && !failure.empty() && !fault_since_start_ && !in_script(failure))
    fail("the stop failed: " + failure);
  const bool gone = disk_.files().folder_removed();
  if (oracle_.is_loaded() && failure.empty() && gone && folder_changed_us_ < told_to_stop_us_)
    fail("the stop of a server without a folder exits with status 0");
  const bool keeps_nothing = gone || process_->options().appendonly != "yes";
  ++counts_.stops;
  note_options();
  oracle_.ended(failure.empty() ? End::kStopped : End::kFailed, scheduler_.now_us(), disk_.sync_us());
  Loop::get().die();
  disk_.files().kill();
  scheduler_.drain();
  process_.reset();
  clients_.clear();
  if (folder_changed_ && (!failure.empty() || keeps_nothing)) oracle_.forget();
}

}  // namespace holdfast::simulation
