// Stock Redis for tests of the library: one server, with optional replicas, and a real cluster of six
// processes. REDIS_SERVER names the binary.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "files/temp_folder.h"
#include "locks_rig.h"

namespace holdfast::integration {

// build/redis-server unless REDIS_SERVER says otherwise.
std::string redis_program();

// A Redis server on a free port, without data on disk. It ends with this object.
class RedisProcess {
 public:
  explicit RedisProcess(const Words& args = {}, int port = 0);
  RedisProcess(const RedisProcess&) = delete;
  RedisProcess& operator=(const RedisProcess&) = delete;

  int port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  void signal(int number) const { process_->signal(number); }
  void end() { process_.reset(); }  // kills the server, like a machine that fails
  bool runs() const { return process_ != nullptr; }
  // Sends the request on a new connection. Blanks separate its words.
  Value ask(const std::string& line) const;
  // A field of INFO; empty if it does not exist.
  std::string info(const std::string& section, const std::string& name) const;

 private:
  TempFolder folder_;
  int port_ = 0;
  std::unique_ptr<Process> process_;
};

class RedisServer final : public LockServer {
 public:
  explicit RedisServer(const Words& args = {}) : redis_(args), rig_(address_of(redis_)) {}

  std::string place() const override { return "redis://" + redis_.address(); }
  // Sends the request as the library does: LOCK and similar commands become scripts.
  Value ask(const std::string& line) override { return rig_.ask(words_of(line)); }
  // A waiter subscribes to the lock's channel: checks whether any channel has a subscriber.
  void await_waiting(int64_t n) override {
    until("the waiters", [&] { return ask("PUBSUB CHANNELS __lock__:*").elements.empty() == (n == 0); });
  }
  // The number of scripts that the server has run.
  int64_t scripts() const;

  RedisProcess& process() { return redis_; }
  Rig& rig() { return rig_; }
  static Address address_of(const RedisProcess& redis) {
    Address address{"127.0.0.1", redis.port()};
    address.redis = true;
    return address;
  }

 private:
  RedisProcess redis_;
  Rig rig_;
};

// Three masters and three replicas, made by `redis-cli --cluster create`.
class RedisCluster {
 public:
  RedisCluster();

  std::string place() const;
  RedisProcess& master_of(const std::string& key);
  // A replica of the master, or null.
  RedisProcess* replica_of(const RedisProcess& master);
  void await_master(const std::string& key, const RedisProcess& wanted);
  // Repeats CLUSTER FAILOVER until it succeeds: Redis aborts a failover after 5 s, which is too short for a
  // loaded machine.
  void fail_over(const std::string& key, const RedisProcess& replica);
  const std::vector<std::unique_ptr<RedisProcess>>& nodes() const { return nodes_; }

 private:
  std::vector<std::unique_ptr<RedisProcess>> nodes_;
};

}  // namespace holdfast::integration
