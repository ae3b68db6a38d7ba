// Drives the engine as the server does, with requests, effects and deadlines. Also has the table of
// engines.
#include "client/transport/embedded_engine.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <chrono>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "client/base/random.h"
#include "client/transport/embedded.h"

namespace holdfast::client {
namespace {

Now read_clock() { return {Loop::now(), static_cast<int64_t>(Loop::clock_us())}; }

int64_t stopwatch_us() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

uint64_t random_number() {
  std::array<uint8_t, sizeof(uint64_t)> bytes{};
  fill_random(bytes);
  return std::bit_cast<uint64_t>(bytes);
}

Config config_of(uint64_t token_floor) {
  Config config;
  config.hash_seed = random_number();
  config.token_floor = token_floor;
  // Without random numbers the engine cannot continue: noexcept ends the process.
  config.random = [](std::span<uint8_t> bytes) noexcept { fill_random(bytes); };
  config.clock_us = stopwatch_us;
  config.change = [](const ConfigChanges& changes, Config&) {
    return ConfigRefusal{changes.front().first, "an embedded engine has no options"};
  };
  config.rewrite = [](const std::vector<std::string>&) {
    return "ERR The server is running without a config file";
  };
  return config;
}

// The engines of this process, by name.
struct Registry {
  struct Entry {
    std::unique_ptr<EmbeddedEngine> engine;
    size_t users = 0;
  };
  const pid_t pid = getpid();
  const Registry* const before;  // the parent's, kept but not used: its mutex may stay locked for ever
  std::mutex mutex;
  std::map<std::string, Entry> engines;
  uint64_t largest_token = 0;  // the largest token of all ended engines, because the clock may be set back

  explicit Registry(const Registry* parents) : before(parents) {}
  std::shared_ptr<EmbeddedEngine> use(const std::string& name);
  void leave(const std::string& name);
};

std::shared_ptr<EmbeddedEngine> Registry::use(const std::string& name) {
  const std::lock_guard lock(mutex);
  if (!engines.contains(name)) {
    auto engine = std::make_unique<EmbeddedEngine>(std::max(largest_token, Loop::clock_us()));
    engines[name].engine = std::move(engine);
  }
  Entry& entry = engines[name];
  ++entry.users;
  return {entry.engine.get(), [this, name](EmbeddedEngine*) { leave(name); }};
}

void Registry::leave(const std::string& name) {
  std::unique_ptr<EmbeddedEngine> ends;  // destroyed after the unlock, because it waits for a thread
  const std::lock_guard lock(mutex);
  Entry& entry = engines.at(name);
  if (--entry.users > 0) return;
  largest_token = std::max(largest_token, entry.engine->largest_token());
  ends = std::move(entry.engine);
  engines.erase(name);
}

// Returns the registry of this process. It is never destroyed, because static clients may end after all
// other statics. It uses no lock, because a child of fork() would inherit a locked one.
Registry& registry() {
  static std::atomic<Registry*> current = nullptr;
  Registry* known = current.load();
  while (known == nullptr || known->pid != getpid()) {
    auto fresh = std::make_unique<Registry>(known);
    if (current.compare_exchange_strong(known, fresh.get())) return *fresh.release();
  }
  return *known;
}

}  // namespace

std::shared_ptr<EmbeddedEngine> EmbeddedEngine::use(const std::string& name) {
  return registry().use(name);
}

EmbeddedEngine::EmbeddedEngine(uint64_t token_floor) : engine_(config_of(token_floor)) {
  loop_.post([this] { timer_ = std::make_unique<LoopTimer>(loop_, [this] { on_time(); }); });
}

EmbeddedEngine::~EmbeddedEngine() {
  assert(ports_.empty() && "each connection is a user");
  loop_.post([this] { timer_.reset(); });
}

uint64_t EmbeddedEngine::largest_token() {
  const std::lock_guard lock(mutex_);
  return engine_.largest_token();
}

ConnId EmbeddedEngine::open(std::shared_ptr<Mailbox> mailbox) {
  const std::lock_guard lock(mutex_);
  const ConnId id = engine_.open("embedded:0", "embedded:0", read_clock());
  ports_[id.serial] = {id, std::move(mailbox), {}};
  return id;
}

void EmbeddedEngine::send(ConnId connection, const std::vector<std::string>& argv) {
  const std::lock_guard lock(mutex_);
  Port* port = find(connection);
  if (port == nullptr) return;
  const Now now = read_clock();
  port->requests.push_back(argv);
  run_requests(*port, now);
  end_iteration(now);
}

void EmbeddedEngine::close(ConnId connection) {
  const std::lock_guard lock(mutex_);
  if (ports_.erase(connection.serial) == 0) return;
  const Now now = read_clock();
  engine_.drop(connection, now, effects_);
  end_iteration(now);
}

EmbeddedEngine::Post EmbeddedEngine::collect(Mailbox& mailbox) {
  const std::lock_guard lock(mutex_);
  mailbox.awaited = false;
  return {std::exchange(mailbox.replies, {}), mailbox.ended};
}

EmbeddedEngine::Port* EmbeddedEngine::find(ConnId connection) {
  const auto found = ports_.find(connection.serial);
  return found == ports_.end() ? nullptr : &found->second;
}

void EmbeddedEngine::run_requests(Port& port, const Now& now) {
  bool runs_deferred = !engine_.blocked(port.id) && !engine_.closing(port.id);
  while (runs_deferred && !port.requests.empty()) {
    const std::vector<std::string> request = std::move(port.requests.front());
    port.requests.pop_front();
    const std::vector<std::string_view> argv(request.begin(), request.end());
    runs_deferred = engine_.apply(port.id, argv, now, effects_);
  }
}

// Applies the effects until there are none. An effect may cause effects: a reply wakes a connection, whose
// next request wakes another one.
void EmbeddedEngine::end_iteration(const Now& now) {
  while (!effects_.empty()) {
    const Effects present = std::exchange(effects_, {});
    for (const ConnId id : present.closes) {
      if (const Port* port = find(id)) end(*port, now);
    }
    for (const ConnId id : present.dirty) {
      if (const Port* port = find(id)) deliver(*port);
    }
    for (const ConnId id : present.wakes) {
      if (Port* port = find(id)) run_requests(*port, now);
    }
  }
  arm();
}

void EmbeddedEngine::deliver(const Port& port) {
  Buffer& output = engine_.output(port.id);
  Mailbox& mailbox = *port.mailbox;
  const bool overflowed = output.overflowed();
  if (!overflowed) mailbox.replies.append(output.view());
  output.clear();
  if (overflowed || mailbox.replies.size() > engine_.output_limit(port.id)) {
    effects_.closes.push_back(port.id);
  }
  if (std::exchange(mailbox.awaited, true)) return;
  mailbox.loop.post([box = port.mailbox] { EmbeddedConnection::receive(box); });
}

void EmbeddedEngine::end(const Port& port, const Now& now) {
  port.mailbox->ended = true;
  deliver(port);
  const ConnId id = port.id;
  ports_.erase(id.serial);
  engine_.drop(id, now, effects_);
}

// Sets the timer to the next deadline if that is earlier. A later deadline does not move the timer, so it
// may fire with no work to do.
void EmbeddedEngine::arm() {
  const TimeMs next = engine_.next_deadline().value_or(kNever);
  if (next >= alarm_) return;
  alarm_ = next;
  loop_.post([this] {
    const std::lock_guard lock(mutex_);
    if (timer_ != nullptr) timer_->set(alarm_);  // null: the timer fired once more during destruction
  });
}

void EmbeddedEngine::on_time() {
  const std::lock_guard lock(mutex_);
  const Now now = read_clock();
  alarm_ = kNever;
  engine_.tick(now, effects_);
  end_iteration(now);
}

}  // namespace holdfast::client
