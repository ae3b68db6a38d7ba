// The engine inside the process, which all connections to `embedded:` of one name share. Any thread may
// call any function: one mutex guards all members, and the calling thread does the engine's work. The
// engine's own thread is only for deadlines, which must be met even if the program's callbacks block.
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

// The replies that the engine has for a connection. The mutex of the engine guards the mailbox, except
// `owner`, which belongs to the thread of `loop`.
struct Mailbox {
  Loop& loop;
  EmbeddedConnection* owner;  // null: the connection was destroyed
  std::string replies;
  bool ended = false;    // the engine closed the connection: no more replies come
  bool awaited = false;  // work posted to the loop will read the mailbox
};

class EmbeddedEngine {
 public:
  // Returns the engine of that name; makes it if there is none. It ends with its last user. The tokens of
  // the next engine are larger. A child of fork() has engines of its own. Throws std::system_error as Loop
  // does.
  static std::shared_ptr<EmbeddedEngine> use(const std::string& name);

  explicit EmbeddedEngine(uint64_t token_floor);
  ~EmbeddedEngine();
  EmbeddedEngine(const EmbeddedEngine&) = delete;
  EmbeddedEngine& operator=(const EmbeddedEngine&) = delete;

  ConnId open(std::shared_ptr<Mailbox> mailbox);
  void send(ConnId connection, const std::vector<std::string>& argv);
  void close(ConnId connection);
  // Takes the replies out of the mailbox.
  struct Post {
    std::string replies;
    bool ended = false;
  };
  Post collect(Mailbox& mailbox);
  uint64_t largest_token();

 private:
  // The state of a connection that the engine does not keep.
  struct Port {
    ConnId id;
    std::shared_ptr<Mailbox> mailbox;
    std::deque<std::vector<std::string>> requests;  // deferred while the connection is blocked
  };

  Port* find(ConnId connection);
  void run_requests(Port& port, const Now& now);
  void deliver(const Port& port);
  void end(const Port& port, const Now& now);
  void end_iteration(const Now& now);
  void arm();
  void on_time();

  std::mutex mutex_;  // guards all members except the loop and the timer
  Engine engine_;
  Effects effects_;
  std::unordered_map<uint64_t, Port> ports_;  // by serial
  TimeMs alarm_ = kNever;                     // the timer's time after all posted work has run
  std::unique_ptr<LoopTimer> timer_;          // for the loop's thread only
  Loop loop_;                                 // the last member, so that its thread ends first
};

}  // namespace holdfast::client
