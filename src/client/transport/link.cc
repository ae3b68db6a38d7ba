// A ServerLink consists of a pipeline, a watcher, and a connection for each wait.
#include "client/transport/link.h"

#include <cassert>
#include <map>
#include <utility>

#include "client/transport/auth.h"
#include "client/transport/connection.h"
#include "client/transport/pipeline.h"
#include "client/transport/watcher.h"

namespace holdfast::client {
namespace {

// One request that waits.
class WaitingCall final : public ConnectionUser {
 public:
  WaitingCall(Loop& loop, const Address& address, std::vector<std::string> argv, Link::Done done,
              std::function<void()> forget)
      : argv_(std::move(argv)),
        done_(std::move(done)),
        forget_(std::move(forget)),
        connection_(open_connection(loop, address, *this)) {}

 private:
  void opened() override { connection_->send(argv_); }
  void answered(Value value) override {
    if (!done_) return broke("a reply without a request");
    deliver(reply_of(value));
  }
  // forget() destroys this object, so the function moves all that it needs out of it first.
  void broke(std::string why) override {
    const Link::Done done = std::exchange(done_, nullptr);
    const Reply lost = reply_of(answer_of({Value::Kind::kLost, 0, std::move(why), {}}));
    const std::function<void()> forget = std::move(forget_);
    forget();
    if (done) done(lost);
  }
  void deliver(const Reply& reply) {
    const Link::Done done = std::exchange(done_, nullptr);
    if (done) done(reply);
  }

  std::vector<std::string> argv_;
  Link::Done done_;
  std::function<void()> forget_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace

struct ServerLink::Core {
  Core(Loop& on, Address at)
      : loop(on), address(std::move(at)), pipeline(on, address), watcher(on, address) {}

  Loop& loop;
  const Address address;
  Pipeline pipeline;
  Watcher watcher;
  std::map<Wait, WaitingCall> waits;
  Wait last_wait = 0;
};

ServerLink::ServerLink(Loop& loop, Address address)
    : core_(std::make_unique<Core>(loop, std::move(address))) {
  assert(loop.on_thread());
}

ServerLink::~ServerLink() { assert(core_->loop.on_thread()); }

void ServerLink::ask(const std::vector<std::string>& argv, DurationMs timeout, Answered done) {
  assert(core_->loop.on_thread());
  if (core_->address.password.empty()) return core_->pipeline.ask(argv, timeout, std::move(done));
  core_->pipeline.ask(argv, timeout,
                      [done = std::move(done)](const Value& value) { done(answer_of(value)); });
}

Link::Wait ServerLink::wait(const std::vector<std::string>& argv, const Done& done) {
  assert(core_->loop.on_thread());
  const Wait id = ++core_->last_wait;
  core_->waits.try_emplace(id, core_->loop, core_->address, argv, done,
                           [core = core_.get(), id] { core->waits.erase(id); });
  return id;
}

void ServerLink::end(Wait wait) {
  assert(core_->loop.on_thread());
  core_->waits.erase(wait);
}

Link::Watch ServerLink::watch(const std::string& channel,
                              std::function<void(const std::string&)> on_message) {
  assert(core_->loop.on_thread());
  return core_->watcher.watch(channel, std::move(on_message));
}

Link::Watch ServerLink::watch_pattern(const std::string& pattern, OnPatternMessage on_message) {
  assert(core_->loop.on_thread());
  return core_->watcher.watch_pattern(pattern, std::move(on_message));
}

void ServerLink::unwatch(Watch watch) {
  assert(core_->loop.on_thread());
  core_->watcher.unwatch(watch);
}

void ServerLink::on_watch_loss(std::function<void(const std::string& why)> callback) {
  core_->watcher.on_loss(std::move(callback));
}

}  // namespace holdfast::client
