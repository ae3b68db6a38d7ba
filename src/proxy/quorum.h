// The servers of the proxy: links and channels to them, requests to all, and acquisitions. On the loop of
// the proxy's server.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/api/lock_driver.h"
#include "client/api/slots.h"
#include "client/base/address.h"
#include "client/transport/channel.h"
#include "client/transport/transport.h"

struct uv_loop_s;

namespace holdfast::proxy {

// A lock at the servers, with its driver. The end of the object ends the driver's news, not the hold.
class DrivenLock final : public LockUser {
 public:
  DrivenLock() = default;
  ~DrivenLock() override {
    if (driver != nullptr) driver->retire();
  }
  DrivenLock(const DrivenLock&) = delete;
  DrivenLock& operator=(const DrivenLock&) = delete;

  void driver_changed() override {
    const std::function<void()> call = changed;  // it may replace itself
    if (call) call();
  }

  std::shared_ptr<LockDriver> driver;
  std::function<void()> changed;  // not called within a call of the driver; may end this object
};

class Quorum {
 public:
  // `loop` is that of the caller, and must run until all handles are closed after close().
  Quorum(client::ClientConfig place, uv_loop_s& loop);
  ~Quorum();
  Quorum(const Quorum&) = delete;
  Quorum& operator=(const Quorum&) = delete;

  // Drops all requests: no callback follows.
  void close();

  size_t size() const { return place_.servers.size(); }
  size_t quorum() const { return place_.write_quorum; }
  std::string name(size_t server) const { return place_.servers[server].text(); }
  DurationMs timeout() const { return place_.server_timeout; }
  client::Loop& loop() { return *loop_; }

  // The answers so far, one element a server.
  using Answers = std::vector<std::optional<client::Value>>;
  // Called after each answer, until it returns true; a lost request is an answer (kLost). Never within
  // ask().
  using Look = std::function<bool(const Answers&)>;
  // Sends a request to all servers. Each answer comes within timeout().
  void ask(const std::vector<std::string>& argv, Look look);
  // Sends a request to one server. Nobody waits for the answer.
  void tell(size_t server, const std::vector<std::string>& argv);

  // The server has not answered the UNLOCK of this hold: pay() sends it again.
  void owe_release(size_t server, const std::string& key, const std::string& owner);
  // The server answers again.
  void pay_releases(size_t server);
  // Beyond so many releases the oldest one of the server is forgotten: its hold lasts until its TTL is
  // over.
  static constexpr size_t kMostOwed = 10'000;

  // What an acquisition asks for.
  struct Wish {
    std::string key;
    std::string slot;  // owner_name.h
    client::LockMode mode = client::LockMode::kExclusive;
    uint32_t limit = 1;
    std::string note;
    DurationMs ttl{0};  // on the servers
    DurationMs delay{0};
    std::optional<DurationMs> wait;  // 0: one try; nullopt: no limit
  };
  // Returns an acquisition that is not begun.
  std::unique_ptr<DrivenLock> acquire(const Wish& wish);

 private:
  const client::ClientConfig place_;
  std::unique_ptr<client::Loop> loop_;
  std::vector<std::unique_ptr<client::Link>> links_;
  std::vector<std::shared_ptr<client::Channel>> channels_;
  std::vector<std::deque<std::pair<std::string, std::string>>> owed_;  // keys and owners, by server
  Slots slots_;
};

}  // namespace holdfast::proxy
