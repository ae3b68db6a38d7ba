// The store, an engine and a server's turns on a disk in memory, by a clock that a test sets. No sockets;
// of the loop only the jobs run. What the server does with replies is done here in the same order.
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

namespace holdfast {

// One clock for all lives of a test.
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

  // `arguments` are options beside --dir.
  Process(CrashFiles& disk, const Words& arguments);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  const std::string& failure() const { return failure_; }  // of the start; empty: it serves
  Store& store() { return *store_; }
  Engine& engine() { return *engine_; }

  // One request on a connection of its own, in a turn of its own. Its reply if it has been sent by the time
  // that all jobs are done, else "held".
  std::string ask(const Words& words);
  // The same without waiting for jobs. Returns a number for reply().
  size_t send(const Words& words);
  std::string reply(size_t number) const;
  // On a connection that stays open until the process ends.
  std::string ask_in_session(const Words& words);

  // A line of INFO persistence.
  std::string fact(const std::string& name) const;
  // Runs the loop until the snapshot under way has ended.
  void finish_save();
  // Runs jobs and the turns that follow from them until there is nothing left to do.
  void settle();
  // Nobody asks for anything; the timers fire.
  void idle(int seconds);
  // SIGTERM: what stop() says.
  bool stop();
  // SIGKILL.
  void kill();

 private:
  struct Sent {
    ConnId conn;
    std::string text;
    bool sent = false;
    bool marked = false;
    bool closes = true;
  };
  void turn();
  size_t apply(ConnId conn, const Words& words, bool closes);
  void end_turn();
  void release(bool marked_only);
  void end();

  CrashFiles& disk_;
  std::shared_ptr<bool> dead_ = std::make_shared<bool>(false);
  uv_loop_t loop_;
  Options options_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Engine> engine_;
  Effects effects_;
  std::vector<Sent> replies_;
  size_t fresh_from_ = 0;  // replies_ from there on are of the turn that is open
  bool turn_wanted_ = false;
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

// The machine goes down and comes up again with another kernel; `seed` decides what was not synced.
void reboot(CrashFiles& disk, uint64_t seed);

}  // namespace holdfast
