// What the holds of one client share: the loop, the links and the ring. Ends by close(), on a thread of the
// user; what is left of it afterwards is data.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "client/base/address.h"
#include "client/base/ring.h"
#include "client/transport/transport.h"

namespace holdfast {

class HoldCore;

class ClientCore {
 public:
  explicit ClientCore(client::Place place);
  ~ClientCore();
  ClientCore(const ClientCore&) = delete;
  ClientCore& operator=(const ClientCore&) = delete;

  const client::Place& place() const { return place_; }
  const client::Ring& ring() const { return ring_; }
  bool is_forked() const;
  // Throws std::logic_error in a child of the process that made it.
  void forbid_after_fork() const;
  // The same, and on the loop's thread, which would wait for itself.
  void forbid_to_wait();

  // Runs `work` on the loop's thread. False: the client is closed, and it never will.
  bool post(std::function<void()> work);
  // Cancels all holds, waits until they and all other work have ended, and ends the loop. Once.
  void close();

  // The loop's thread:
  client::Loop& loop() { return *loop_; }
  bool is_closing() const { return closing_; }
  client::Link& link(size_t server) { return *links_[server]; }
  // Whether somebody here had to wait for the key within the last second.
  void note_contention(const std::string& key);
  bool is_contended(const std::string& key) const;
  void adopt(std::shared_ptr<HoldCore> hold);
  void forget(const std::shared_ptr<HoldCore>& hold);
  // Asks a server something that is no hold's; close() waits for its answer. Where the client is closing it
  // is lost, at once.
  void ask(size_t server, const std::vector<std::string>& argv, const client::Link::Answered& done);
  // What is to be finished before the client ends.
  void begin_work() { ++works_; }
  void end_work();

 private:
  const client::Place place_;
  const client::Ring ring_;
  const pid_t pid_;
  std::vector<std::shared_ptr<void>> servers_;  // of which something is in this process, until the end
  std::unique_ptr<client::Loop> loop_owner_;
  client::Loop* const loop_;  // good until its thread has ended
  std::mutex mutex_;          // of the next three
  bool closed_ = false;
  std::condition_variable ended_;
  bool all_ended_ = false;
  // The loop's thread:
  std::vector<std::unique_ptr<client::Link>> links_;
  std::set<std::shared_ptr<HoldCore>> holds_;  // that have not ended
  std::map<std::string, TimeMs> contended_;    // keys that somebody waited for, and until when that counts
  size_t works_ = 0;
  bool closing_ = false;
};

}  // namespace holdfast
