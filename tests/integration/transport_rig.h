// The client's loop and links for tests: the test's thread sends requests, and the loop's thread puts the
// replies into an Inbox.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "client/transport/transport.h"
#include "integration/server_harness.h"

namespace holdfast::integration {

using client::Address;
using client::Link;
using client::Loop;
using client::LoopTimer;
using client::Reply;
using client::Value;
using Words = std::vector<std::string>;
using Kind = Reply::Kind;

inline constexpr DurationMs kLong{60000};

// The values of callbacks. The test's thread takes them in order.
template <typename T>
class Inbox {
 public:
  void put(T item) {
    const std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
    changed_.notify_one();
  }
  T take() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kPatience, [this] { return !items_.empty(); }))
      throw std::runtime_error("no value came into the inbox");
    T item = std::move(items_.front());
    items_.pop_front();
    return item;
  }
  // Takes values up to and including `item`.
  void take_until(const T& item) {
    while (take() != item) continue;
  }
  bool empty() {
    const std::lock_guard lock(mutex_);
    return items_.empty();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> items_;
};

template <typename Work>
void run_on(Loop& loop, Work work) {
  Inbox<bool> done;
  loop.post([&] {
    work();
    done.put(true);
  });
  done.take();
}

// A loop with a link to one server. A test must create the inboxes of its callbacks before the rig.
class Rig {
 public:
  explicit Rig(const Server& server) : Rig(server.port()) {}
  explicit Rig(int port, const std::string& host = "127.0.0.1") : Rig(Address{host, port}) {}
  explicit Rig(const Address& address) {
    run([&] { link_ = client::make_link(loop_, address); });
  }
  ~Rig() {
    run([this] { link_.reset(); });
  }
  Loop& loop() { return loop_; }
  Link& link() { return *link_; }
  void drop_link() { link_.reset(); }
  template <typename Work>
  void run(Work work) {
    run_on(loop_, work);
  }

  Reply send(const Words& words, DurationMs timeout = kLong) {
    Inbox<Reply> inbox;
    run([&] { link_->send(words, timeout, [&](const Reply& reply) { inbox.put(reply); }); });
    return inbox.take();
  }
  Value ask(const Words& words) {
    Inbox<Value> inbox;
    run([&] { link_->ask(words, kLong, [&](const Value& value) { inbox.put(value); }); });
    return inbox.take();
  }
  Link::Wait wait(const Words& words, Inbox<Reply>& inbox) {
    Link::Wait id = 0;
    run([&] { id = link_->wait(words, [&](const Reply& reply) { inbox.put(reply); }); });
    return id;
  }
  Link::Watch watch(const std::string& channel, Inbox<std::string>& inbox) {
    Link::Watch id = 0;
    run([&] { id = link_->watch(channel, [&](const std::string& message) { inbox.put(message); }); });
    return id;
  }

 private:
  Loop loop_;
  std::unique_ptr<Link> link_;
};

inline std::string text(const Reply& reply) {
  static const std::vector<std::string> kNames{"grant", "null", "integer", "text", "error", "lost"};
  return kNames.at(static_cast<size_t>(reply.kind)) + " " + std::to_string(reply.number) + " " + reply.text;
}

}  // namespace holdfast::integration
