// Memory work that would take the loop milliseconds: to map and unmap pages of the keyspaces, which jobs
// do, and to give memory of the heap back to the system, which it does piece by piece between the
// iterations.
#pragma once

#include <uv.h>

#include <cstdint>

#include "core/base/types.h"
#include "io/os/heap_release.h"

namespace holdfast {

class Engine;
class PagePool;

class MemoryUpkeep {
 public:
  // Memory goes back to the system if so much has been freed, and at least kLeastPart of what is in use.
  static constexpr uint64_t kLeastBytes = uint64_t{32} << 20U;
  static constexpr uint64_t kLeastPart = 4;
  static constexpr DurationMs kBetweenSamples{100};  // for the most memory in use

  explicit MemoryUpkeep(PagePool& pages) : pages_(pages) {}
  MemoryUpkeep(const MemoryUpkeep&) = delete;
  MemoryUpkeep& operator=(const MemoryUpkeep&) = delete;

  void start(uv_loop_t* loop);
  // After each iteration, with its time.
  void end_iteration(const Engine& engine, TimeMs now) {
    make_spare_pages();
    free_pages();
    if (is_due(sampled_at_ + kBetweenSamples, now)) sample(engine, now);
  }
  // About once a second: the memory in use. Begins to release memory if enough was freed, and if no more
  // has been freed since the last call: only then are the free blocks large.
  void look(uint64_t used_bytes);
  // The loop must run once more before the destructor.
  void close();

 private:
  static void on_idle(uv_idle_t* idle) noexcept;
  void make_spare_pages();
  void free_pages();
  void sample(const Engine& engine, TimeMs now);

  PagePool& pages_;
  uv_loop_t* loop_ = nullptr;
  uv_idle_t idle_;              // active while the heap is released
  bool making_pages_ = false;   // a job runs
  bool freeing_pages_ = false;  // a job runs
  bool releases_heap_ = false;
  uint64_t most_used_bytes_ = 0;  // since the heap was last released
  uint64_t last_used_bytes_ = 0;  // at the last look
  TimeMs sampled_at_;
  HeapRelease heap_;
};

}  // namespace holdfast
