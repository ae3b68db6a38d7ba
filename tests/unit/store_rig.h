// The store, an engine and the server's loop iterations on a disk in memory, with a clock that the test
// sets. It has no sockets; of the loop only the jobs run. The rig handles replies in the same order as the
// server.
#pragma once

#include <doctest/doctest.h>
#include <uv.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/codec/meta.h"
#include "core/engine/engine.h"
#include "files/borrowed_files.h"
#include "files/crash_files.h"
#include "io/disk/store.h"
#include "io/net/held_replies.h"

namespace holdfast {

// One clock for all processes of a test.
inline Now& rig_now() {
  static Now now;
  return now;
}
inline Now read_rig_clock() { return rig_now(); }
inline void set_rig_clock(int64_t ms) { rig_now() = {{1'000'000 + ms}, 1'700'000'000'000'000 + ms * 1000}; }

// A server process from its start to its end.
class Process {
 public:
  using Words = std::vector<std::string>;

  // `arguments` are options in addition to --dir.
  Process(CrashFiles& disk, const Words& arguments);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  const std::string& failure() const { return failure_; }  // of the start; empty: the server runs
  Store& store() { return *store_; }
  Engine& engine() { return *engine_; }

  // Sends one request on its own connection, in its own loop iteration. Returns the reply if it was sent
  // by the time that all jobs have finished, else "held".
  std::string ask(const Words& words);
  // Sends a request without waiting for jobs. Returns a number for reply().
  size_t send(const Words& words);
  // Sends requests in one loop iteration, each on a connection that stays open until the process ends.
  std::vector<size_t> send_together(const std::vector<Words>& requests);
  std::string reply(size_t number) const;
  // Sends a request on a connection that stays open until the process ends.
  std::string ask_in_session(const Words& words);

  // Returns the value of a field of INFO persistence.
  std::string fact(const std::string& name) const;
  // Runs the loop until the snapshot in progress has ended.
  void run_save();
  void finish_save();  // the same, and the work that it causes
  // Runs jobs and the loop iterations that they cause until no work is left.
  void settle();
  // Runs the loop until a job is done, and no iteration of the server after it.
  void finish_job();
  void finish_jobs();  // the same with all jobs
  unsigned running_jobs() const { return loop_.active_reqs.count; }
  // One iteration of the server without a request.
  void run_iteration();
  // Lets this many seconds pass without a request; the timers fire, and snapshots reach their end.
  void idle(int seconds);
  // Ends the process by SIGTERM. Returns the result of stop().
  bool stop();
  // Ends the process by SIGKILL.
  void kill();

 private:
  struct Sent {
    ConnId conn;
    std::string text;
    bool sent = false;
    bool closes = true;
  };
  size_t handle(ConnId conn, const Words& words, bool closes);
  size_t apply(ConnId conn, const Words& words, bool closes);
  void end_iteration();
  void release(const std::vector<HeldReplies::Reply>& replies);
  // Runs the loop until the field of INFO persistence has the value.
  void run_until(const std::string& name, const std::string& value);
  void rest();  // runs the loop to the end of a snapshot, and settles
  void end();

  CrashFiles& disk_;
  std::shared_ptr<bool> dead_ = std::make_shared<bool>(false);
  uv_loop_t loop_;
  Options options_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Engine> engine_;
  Effects effects_;
  HeldReplies held_;
  std::vector<Sent> replies_;
  size_t fresh_from_ = 0;  // replies_ from this index on belong to the current iteration
  bool iteration_wanted_ = false;
  bool loaded_ = false;
  bool ended_ = false;
  std::string failure_;
};

// The meta file as it is on the disk.
inline Meta meta_of(CrashFiles& disk) {
  Meta meta;
  REQUIRE(parse_meta(disk.bytes("meta"), meta).empty());
  return meta;
}

// The machine crashes and starts again in another boot; `seed` decides the fate of unsynced data.
void reboot(CrashFiles& disk, uint64_t seed);

inline bool is_granted(const std::string& reply) { return reply.starts_with("*2"); }
inline bool is_recovering(const std::string& reply) { return reply.starts_with("-RECOVERING"); }
// Returns a token so many minutes ahead of the clock.
std::string token_ahead(int64_t minutes);
// Sends a LOCK of a new key with a token so many minutes ahead of the clock, which meta must cover.
size_t send_ahead(Process& server, int64_t minutes);
// Lets `seconds` pass, and checks that the server grants a free lock then, and not a second earlier.
void check_wait_ends_after(int seconds, Process& server);

}  // namespace holdfast
