// The parts that the holds of one client share: the loop, the links and the ring. close() ends them, on a
// thread of the user. After that the object has only data.
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

#include "client/api/client_meter.h"
#include "client/api/slots.h"
#include "client/base/address.h"
#include "client/base/ring.h"
#include "client/transport/channel.h"
#include "client/transport/transport.h"
#include "holdfast/client.h"

namespace holdfast {

class HoldCore;

class ClientCore {
 public:
  ClientCore(client::ClientConfig config, const ClientOptions& options);
  ~ClientCore();
  ClientCore(const ClientCore&) = delete;
  ClientCore& operator=(const ClientCore&) = delete;

  const client::ClientConfig& config() const { return config_; }
  const client::Ring& ring() const { return ring_; }
  // Any thread may call stats(), the loop's thread the other functions.
  ClientMeter& meter() { return *meter_; }
  bool is_forked() const;
  // Throws std::logic_error in a child of the process that made this object.
  void forbid_after_fork() const;
  // The same, and throws on the loop's thread, which would wait for itself.
  void forbid_to_wait();

  // Lets `work` run on the loop's thread. Returns false if the client is closed: `work` will never run.
  // Any thread.
  bool post(std::function<void()> work);
  // Cancels all holds, waits until they and all other work have ended, and ends the loop. Call it once.
  void close();

  // For the loop's thread only:
  client::Loop& loop() { return *loop_; }
  bool is_closing() const { return closing_; }
  client::Link& link(size_t server) { return *links_[server]; }
  // Whether LOCK may have a NOTE there. A server that rejected one gets none for a while (kNotesRetried).
  bool takes_notes(size_t server) const;
  void record_no_notes(size_t server);
  // Whether a lock on these servers waits by ticket: they are several Holdfast servers, and none is known
  // not to know tickets.
  bool waits_by_ticket(const std::vector<size_t>& servers) const;
  // Only for a server of a lock that waits by ticket.
  const std::shared_ptr<client::Channel>& channel(size_t server) { return channels_[server]; }
  Slots& slots() { return slots_; }
  void adopt(std::shared_ptr<HoldCore> hold);
  void forget(const std::shared_ptr<HoldCore>& hold);
  // Sends a request that belongs to no hold. close() waits for its answer. If the client is closing, `done`
  // gets kLost at once.
  void ask(size_t server, const std::vector<std::string>& argv, const client::Link::Answered& done);
  // Runs `work`, which resumes a coroutine, where the program wants it.
  void resume(std::function<void()> work) const;
  // Begin and end of work that must finish before the client ends.
  void begin_work() { ++works_; }
  void end_work();

 private:
  void open_server(size_t server);

  const std::shared_ptr<ClientMeter> meter_;
  const client::ClientConfig config_;
  const client::Ring ring_;
  const pid_t pid_;
  const std::function<void(std::function<void()>)> resume_;  // ClientOptions::resume
  std::vector<std::shared_ptr<void>> servers_;  // embedded engines, alive until close(); else null
  std::unique_ptr<client::Loop> loop_owner_;
  client::Loop* const loop_;  // valid until the loop's thread has ended
  std::mutex mutex_;          // guards the next three
  bool closed_ = false;
  std::condition_variable ended_;
  bool all_ended_ = false;
  // For the loop's thread only:
  std::vector<std::unique_ptr<client::Link>> links_;
  std::set<std::shared_ptr<HoldCore>> holds_;               // holds that have not ended
  std::vector<std::shared_ptr<client::Channel>> channels_;  // by server; null: a Redis, or a single server
  Slots slots_;
  std::map<size_t, TimeMs> without_notes_;  // servers that rejected a NOTE, and until when that counts
  size_t works_ = 0;
  bool closing_ = false;
};

}  // namespace holdfast
