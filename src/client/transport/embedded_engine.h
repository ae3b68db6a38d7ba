// The engine inside the process: what all connections to `embedded:` of one name share. Any thread may call
// any function: one mutex guards all, and whoever calls does the engine's work. A thread of its own is for
// deadlines alone, as those have to be met whatever the programs' callbacks are doing.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "client/transport/transport.h"
#include "core/engine/engine.h"

namespace holdfast::client {

class EmbeddedConnection;

// Where the engine leaves what a connection is to hear. The mutex of the engine guards it, but for `owner`,
// which belongs to the thread of `loop`.
struct Mailbox {
  Loop& loop;
  EmbeddedConnection* owner;  // null: it has gone
  std::string replies;
  bool ended = false;    // no more will come
  bool awaited = false;  // what has been posted to the loop will find this
};

class EmbeddedEngine {
 public:
  // The engine of that name, which is made where there is none, and ends when its last user is gone. Tokens
  // go on growing from one to the next. A child of fork() has engines of its own. Throws std::system_error
  // as Loop does.
  static std::shared_ptr<EmbeddedEngine> use(const std::string& name);

  explicit EmbeddedEngine(uint64_t token_floor);
  ~EmbeddedEngine();
  EmbeddedEngine(const EmbeddedEngine&) = delete;
  EmbeddedEngine& operator=(const EmbeddedEngine&) = delete;

  ConnId open(std::shared_ptr<Mailbox> mailbox);
  void send(ConnId connection, const std::vector<std::string>& argv);
  void close(ConnId connection);
  // Takes what the mailbox has.
  struct Post {
    std::string replies;
    bool ended = false;
  };
  Post collect(Mailbox& mailbox);
  uint64_t largest_token();

 private:
  // What the engine does not keep of a connection.
  struct Port {
    ConnId id;
    std::shared_ptr<Mailbox> mailbox;
    std::deque<std::vector<std::string>> requests;  // that wait until the connection no longer does
  };

  Port* find(ConnId connection);
  void run_requests(Port& port, const Now& now);
  void deliver(const Port& port);
  void end(const Port& port, const Now& now);
  void end_turn(const Now& now);
  void arm();
  void on_time();

  std::mutex mutex_;  // of all but the loop and the timer
  Engine engine_;
  Effects effects_;
  std::unordered_map<uint64_t, Port> ports_;  // by serial
  TimeMs alarm_ = kNever;                     // of the timer, once all that is posted has run
  std::unique_ptr<LoopTimer> timer_;          // the loop's thread
  Loop loop_;                                 // the last, so that its thread ends first
};

}  // namespace holdfast::client
