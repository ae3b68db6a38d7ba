// The disk of the simulated machine: tests/files/crash_files.h, with operations that take time. The task
// that does an operation pauses before it, so that others run meanwhile, and a crash may come first.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "../dice.h"
#include "files/crash_files.h"

namespace holdfast::simulation {

enum class DiskWork : uint8_t { kRead, kWrite, kCreate, kRename, kRemove, kSync, kSyncFolder };

struct DiskEvents {
  std::function<void(DiskWork work, const std::string& name)> before;  // before the pause
  std::function<void(DiskWork work, const std::string& name)> after;   // if it succeeded
};

class Disk {
 public:
  explicit Disk(uint64_t seed) : dice_(seed) { present() = this; }
  ~Disk() { present() = nullptr; }
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;
  static Disk& get() { return *present(); }

  CrashFiles& files() { return *files_; }
  // The folder as one process sees it.
  std::unique_ptr<Files> folder();
  void watch(DiskEvents events) { events_ = std::move(events); }

  // Halts the scheduler just before the n-th of the following operations; 0: never.
  void halt_before(uint64_t n) { halt_in_ = n; }
  // The longest time of a sync; other operations take a fraction of it.
  void set_sync_us(int64_t us) { sync_us_ = us; }
  int64_t sync_us() const { return sync_us_; }
  static constexpr int64_t kUsualSyncUs = 3000;
  uint64_t operations() const { return operations_; }
  // A random time that a thread of the pool takes to begin.
  int64_t delay_us() { return dice_.between(0, 200); }

  // For the files: lets the operation take its time. Returns false if the process died meanwhile.
  bool begin(DiskWork work, const std::string& name);
  void end(DiskWork work, const std::string& name);

 private:
  static Disk*& present() {
    static Disk* disk = nullptr;
    return disk;
  }

  Dice dice_;
  std::unique_ptr<CrashFiles> files_ = std::make_unique<CrashFiles>();
  DiskEvents events_;
  int64_t sync_us_ = kUsualSyncUs;
  uint64_t halt_in_ = 0;
  uint64_t operations_ = 0;
};

}  // namespace holdfast::simulation
