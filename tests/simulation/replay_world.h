// One engine with a journal and snapshots, as the disk gets them, and the comparison that this simulation
// is about: an engine that loads the snapshot and replays all records since has the same state.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/engine/engine.h"
#include "core/persist/snapshot.h"
#include "unit/session.h"

namespace holdfast::simulation {

struct ReplayStep {
  enum class Kind : uint8_t {
    kAsk,        // a client sends `words`
    kTick,       // the loop wakes up
    kReconnect,  // a client disconnects, and another one connects
    kOptions,    // CONFIG SET of the limits of packed values, from `number`
    kSnapshot,   // a snapshot begins
    kWalk,       // the snapshot makes `number` steps
    kCompare,    // another engine loads everything; `number` decides its options
    kRestart,    // the same; it replaces the first engine
  };
  Kind kind = Kind::kTick;
  int64_t ms = 0;  // the time of the step
  uint64_t number = 0;
  std::vector<std::string> words;
  bool ends_iteration = true;  // the shell takes the records after this step
};

class ReplayWorld {
 public:
  static constexpr size_t kClients = 3;

  explicit ReplayWorld(uint64_t seed);
  ~ReplayWorld();
  ReplayWorld(const ReplayWorld&) = delete;
  ReplayWorld& operator=(const ReplayWorld&) = delete;

  // Plays a step. Returns the fault; empty if there is none.
  std::string play(const ReplayStep& step);
  // The last reply to DUMP or, of libraries, to FUNCTION DUMP.
  const std::string& payload(bool of_libraries) const { return payloads_[of_libraries ? 1 : 0]; }
  bool is_saving() const { return snapshot_ != nullptr; }

 private:
  void ask(const ReplayStep& step);
  void connect(size_t client);
  void take_records();
  void begin_snapshot();
  void walk(uint64_t steps);
  std::string compare(const ReplayStep& step);
  std::string load(Engine& again) const;

  Now now_;
  std::unique_ptr<Engine> engine_;
  std::vector<std::unique_ptr<TestClient>> clients_;
  std::unique_ptr<Snapshot> snapshot_;
  std::string payloads_[2];
  std::string file_;                 // the last complete snapshot; empty: none
  std::vector<std::string> frames_;  // the records since then
  size_t frames_before_ = 0;         // those before the snapshot that is being written
};

}  // namespace holdfast::simulation
