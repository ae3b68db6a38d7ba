// Shared by tests of the C++ library: one server for locks, in a process or embedded, and requests to
// inspect it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>

#include "client.h"
#include "holdfast/client.h"
#include "holdfast/mutex.h"
#include "server_harness.h"
#include "transport_rig.h"

namespace holdfast::integration {

using Locks = holdfast::Client;
using Verdict = holdfast::Outcome;
using namespace std::chrono_literals;

inline LockOptions with_ttl(milliseconds ttl) {
  LockOptions options;
  options.ttl = ttl;
  return options;
}

// Counts the calls of a function on the client's thread. A test can wait for a number of calls.
class Counter {
 public:
  void add() { ++count_; }
  void await(int n) {
    until("the call", [&] { return count_ >= n; });
  }
  int count() const { return count_; }

 private:
  std::atomic<int> count_ = 0;
};

// Sends requests to one server past the library. Blanks separate the words of a request.
class LockServer {
 public:
  LockServer() = default;
  virtual ~LockServer() = default;
  LockServer(const LockServer&) = delete;
  LockServer& operator=(const LockServer&) = delete;

  virtual std::string place() const = 0;  // for Locks
  virtual Value ask(const std::string& line) = 0;

  bool is_free(const std::string& key) { return ask("EXISTS " + key).integer == 0; }
  int64_t listeners(const std::string& key) {
    return ask("PUBSUB NUMSUB __lock__:" + key).elements.at(1).integer;
  }
  int64_t lock_info(const std::string& name) {
    const std::string text = ask("INFO locks").text;
    return std::stoll(text.substr(text.find("\n" + name + ":") + name.size() + 2));
  }
  virtual void await_waiting(int64_t n) {
    until("the queue", [&] { return lock_info("lock_waiters") == n; });
  }
};

inline Words words_of(const std::string& line) {
  std::istringstream in(line);
  return {std::istream_iterator<std::string>(in), {}};
}

// A server in its own process.
class SocketServer final : public LockServer {
 public:
  std::string place() const override { return "holdfast://127.0.0.1:" + std::to_string(server_.port()); }
  Value ask(const std::string& line) override { return rig_.ask(words_of(line)); }

 private:
  Server server_;
  Rig rig_{server_};
};

// An engine inside this process, with a name that no other test has.
class EmbeddedServer final : public LockServer {
 public:
  std::string place() const override { return "embedded:" + name_; }
  Address address() const { return {name_, 0, true}; }
  Value ask(const std::string& line) override { return rig_.ask(words_of(line)); }

 private:
  static std::string fresh_name() {
    static std::atomic<int> last = 0;
    return "test-" + std::to_string(++last);
  }
  const std::string name_ = fresh_name();
  const std::shared_ptr<void> engine_ =
      client::server_of(address());  // otherwise the engine would end with its clients
  Rig rig_{address()};
};

}  // namespace holdfast::integration
