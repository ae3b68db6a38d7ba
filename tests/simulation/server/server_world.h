// A machine with a server, its disk and its clients. Plays the steps of a script:
//   start OPTION VALUE ...     a process begins, if none runs
//   send CLIENT WORD ...       a client sends a request; it connects first if it must
//   drop CLIENT                a client disconnects
//   cut CLIENT N WORD ...      as send, but the bytes from the N-th on arrive before its next request
//   raw CLIENT BYTES           a client sends these bytes
//   room CLIENT N, read CLIENT  a client reads only N more bytes of replies; reads all
//   reset CLIENT               a connection breaks
//   run                        only time passes
//   term, kill N, crash N SEED  SIGTERM; SIGKILL or a crash of the machine just before the N-th of the next
//                              operations on the disk (0: at once), or when two seconds have passed.
//                              With a further word `replies`: when the N-th of the next replies has left
//   wall MS                    the wall clock is set so much ahead, or back
//   disk FAULT ...             capacity BYTES, readonly, failwrite N, failsync N, failfolder N, slow US,
//                              works
//   folder WHAT                remove: the folder is removed. restore: an empty one is put in its place.
//                              copy: it is copied. old, foreign: that copy, or the folder of another
//                              server, is put in its place
//   cpu US                     work between two looks at the stopwatch takes so long; 20 at first
//   check                      the server must answer PING, and grant if the disk works
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client.h"
#include "combinations.h"
#include "disk.h"
#include "loop.h"
#include "machine.h"
#include "oracle.h"
#include "process.h"
#include "scheduler.h"
#include "script.h"

namespace holdfast::simulation {

struct Counts {
  uint64_t steps = 0;
  uint64_t starts = 0;
  uint64_t requests = 0;
  uint64_t kills = 0;
  uint64_t crashes = 0;
  uint64_t stops = 0;
  uint64_t disk_operations = 0;
  uint64_t simulated_s = 0;
  Combinations rare;
};

class ServerWorld {
 public:
  explicit ServerWorld(uint64_t seed);
  ~ServerWorld();
  ServerWorld(const ServerWorld&) = delete;
  ServerWorld& operator=(const ServerWorld&) = delete;

  // Plays one step. Returns the fault; empty if there is none.
  std::string play(const ScriptStep& step);

  // For the generator:
  bool runs() const { return process_ != nullptr; }
  bool is_stopping() const { return told_to_stop_us_ != 0; }
  bool is_loaded() const { return oracle_.is_loaded(); }
  bool recovers() const;
  bool disk_fails() const { return !faults_.empty(); }
  int64_t now_us() const { return scheduler_.now_us(); }
  const View& view() const { return oracle_.view(); }
  bool has_view() const { return oracle_.states() > 0; }
  const Counts& counts() const { return counts_; }

 private:
  void act(const std::vector<std::string>& words);
  void begin_process(const std::vector<std::string>& options);
  LoopEvents loop_events();
  void watch_disk();
  void send(int client, const std::vector<std::string>& words);
  void act_on_client(const std::string& verb, const std::vector<std::string>& words);
  void note_options();
  Client& connected(int client);
  void drop(int client);
  void end_by(const std::vector<std::string>& words);
  void end_at(const std::string& kind, uint64_t seed);
  void disk_fault(const std::vector<std::string>& words);
  void folder(const std::string& what);
  void change_folder(const std::map<std::string, std::string>& contents);
  void check_foreign();
  void terminate();
  int64_t recovery_left_ms();
  void check();
  std::string ask(const std::vector<std::string>& words, int64_t limit_us);

  void run_for(int64_t us);
  void note_restored();
  void observe();
  void observe_written();
  void before_poll();
  void sent(const Socket& socket);
  void note_end();
  bool in_script(const std::string& failure) const;
  void check_limits();
  void fail(const std::string& why) {
    if (wrong_.empty() && !why.empty()) wrong_ = why;
  }

  Scheduler scheduler_;
  Disk disk_;
  Oracle oracle_;
  std::unique_ptr<Process> process_;
  std::map<int, std::unique_ptr<Client>> clients_;
  std::vector<std::string> faults_;             // of the disk, active
  std::map<std::string, std::string> copy_;     // of the folder, from an earlier moment
  std::map<std::string, std::string> foreign_;  // the folder of another server, at the path of this one's
  bool folder_changed_ = false;  // since the last start: data may be lost that the server cannot know
  int64_t folder_changed_us_ = 0;
  uint64_t foreign_folders_ = 0;
  int64_t slow_until_us_ = 0;
  uint64_t halt_after_replies_ = 0;  // 0: never
  bool fault_since_start_ = false;
  int64_t healthy_since_us_ = 0;
  int64_t started_us_ = 0;
  int64_t told_to_stop_us_ = 0;  // 0: not yet
  bool stop_wanted_ = false;     // a client has sent SHUTDOWN
  uint64_t last_signature_ = 0;
  std::optional<View> restored_;  // by the start
  Counts counts_;
  CombinationCounter combinations_;
  std::string fsync_;  // the option appendfsync, as seen last
  std::string wrong_;
};

}  // namespace holdfast::simulation
