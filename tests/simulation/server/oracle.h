// Judges what a server keeps across its ends, by docs/persistence.md ("What survives a stop"). It remembers
// each state that the engine had, which of them a reply has promised, and the tokens and holds that clients
// have seen.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "client.h"
#include "io/config/options.h"
#include "view.h"

namespace holdfast::simulation {

// How a process ended.
enum class End : uint8_t { kStopped, kFailed, kKilled, kCrashed };

class Oracle {
 public:
  // A process begins. `options` must live until ended().
  void begin(const Options& options, int64_t now_us);
  // The process has read the folder. Returns the fault; empty if there is none.
  std::string loaded(View view, int64_t now_us);
  bool is_loaded() const { return loaded_; }
  // The engine's state at this moment.
  std::string observe(View view, int64_t now_us);
  // The journal gets a state that follows the last observed one, and that cannot be observed.
  void unseen() { unseen_ = last(); }
  // The replies of a connection made so far, in bytes: they belong to the present state. Call it after
  // observe().
  void made_replies(uint64_t serial, uint64_t bytes);
  // So many bytes of a connection have left. `refusing`: the server rejects grants, as the disk fails.
  void sent(uint64_t serial, uint64_t bytes, bool refusing);
  // At the end of a start, a recovery wait of so many ms is left.
  std::string check_wait(int64_t left_ms) const;
  // The server has worked without a recovery wait for a while.
  void wait_is_over() { may_wait_ = false; }
  // A client was told that it has a lock.
  void told(const Grant& grant);

  // A snapshot of the present state begins, gets its name, and is certain to keep it.
  void snapshot_begins() { pending_ = last(); }
  void snapshot_placed();
  void folder_synced();

  // A fault of the disk is active from now on, or was until now.
  void trouble() { trouble_ = may_wait_ = true; }
  // A client asked the server to stop without a snapshot.
  void stop_without_save() { no_save_ = true; }
  // A client changed `appendfsync`.
  void fsync_changed(int64_t now_us) { fsync_since_us_ = now_us; }
  // The folder lost data that the server cannot know.
  void forget();
  // The machine's wall clock was set.
  void wall_set() {
    wall_set_ = true;
    fuzzy_ = fuzzy_ || crashed_;
  }
  std::string ended(End end, int64_t now_us, int64_t sync_us);

  const View& view() const { return history_.back().view; }
  size_t states() const { return history_.size(); }

 private:
  struct State {
    View view;
    int64_t at_us = 0;
  };
  struct Lost {
    Record hold;
    int64_t until_ms = 0;
  };
  size_t last() const { return history_.empty() ? 0 : history_.size() - 1; }
  size_t synced_by_time(int64_t now_us, int64_t sync_us) const;
  // A disk that fails may lack the clock of this boot, also after a clean stop that has all data.
  void note_clock() { fuzzy_ = fuzzy_ || (wall_set_ && trouble_); }
  void allow_after_stop();
  void allow_after_crash();
  bool may_lose(End end) const;
  bool matches(const View& before, const View& found, int64_t now_ms) const;
  bool begins_delay(const View& before, const Record& delay, int64_t now_ms) const;
  static bool follows(const View& found, const Record& delay, int64_t now_ms);
  std::string describe_mismatch(const View& found, int64_t now_ms) const;
  View on_disk(const View& before, const View& found) const;
  std::string compare(const View& found, int64_t now_us);
  std::string find_lost(const View& found, int64_t now_us);
  std::string check_new_holds(const View& view);
  std::string check_alone(const View& view, const Record& hold) const;
  void keep_promised_holds(End end);
  void may_lose_promised();
  int64_t promised_deadline_ms(const Record& hold) const;

  const Options* options_ = nullptr;
  bool loaded_ = false;
  bool no_save_ = false;
  bool trouble_ = false;
  bool wall_set_ = false;  // since the last boot
  bool fuzzy_ = false;     // times of an earlier boot are off by an unknown amount
  bool crashed_ = false;   // since the last state was loaded
  bool forgotten_ = true;
  // The state of the disk was not known when a start ended all holds of sessions: some may still be there.
  bool unknown_sessions_ = false;
  bool may_wait_ = false;  // something may have been lost since the server last worked without a wait
  std::optional<int64_t> wait_end_ms_;  // of the recovery wait that began with the first start since

  int64_t fsync_since_us_ = 0;
  bool fsync_is_new_ = false;  // at an end: data from before the change may be unsynced
  std::vector<State> history_;
  std::optional<size_t> unseen_;  // an unknown state may follow this one
  size_t answered_ = 0;           // the last state that a reply of this process relied on
  size_t written_ = 0;            // the last state that a reply promised to keep
  size_t synced_ = 0;             // the last state that a crash of the machine cannot undo
  size_t pending_ = 0;            // the state in the unfinished snapshot
  size_t placed_ = 0;             // the state in the snapshot
  bool unsynced_name_ = false;    // of the snapshot
  // What this process has restored is one of these states. They may differ in holds of sessions, which end
  // at a start, but which a later start restores again if nothing was written meanwhile.
  size_t restored_from_ = 0;
  size_t restored_ = 0;
  size_t lowest_ = 0;  // the states that the next start may find
  size_t highest_ = 0;
  struct Made {
    size_t state;
    uint64_t bytes;
    bool shares;  // see authors_
  };
  std::map<uint64_t, std::vector<Made>> made_;  // by connection; not sent yet
  bool is_new_ = false;                         // the last observation found a new state
  // By state: the replies not sent yet that were first seen with it. At least one of them belongs to the
  // request that changed the state. The others may be of requests before it.
  std::map<size_t, size_t> authors_;

  std::set<Grant> told_;
  std::set<std::tuple<int, std::string, uint64_t>> tokens_known_;  // found or made by this process
  std::map<std::string, uint64_t> largest_;                        // told before this process began, by key
  std::map<std::string, uint64_t> largest_now_;
  std::vector<Record> promised_;  // holds that clients had at the end of the last process
  bool promised_all_ = false;     // none of them may be lost
  bool has_horizon_ = false;      // that process kept until when they last
  std::vector<Lost> lost_;
};

}  // namespace holdfast::simulation
