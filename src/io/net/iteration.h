// The present loop iteration: its time, and the work that it has done. It begins with the first callback
// that needs the time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/engine/engine.h"

namespace holdfast {

class Iteration {
 public:
  // Bytes that an iteration reads before it sends replies.
  static constexpr size_t kMostBytes = size_t{256} << 10;

  bool is_open() const { return open_; }
  // Of the present iteration, or of the last one.
  const Now& now() const { return now_; }
  uint64_t began_ns() const { return began_ns_; }  // by uv_hrtime()

  void begin(uint64_t began_ns, const Now& now) {
    open_ = true;
    began_ns_ = began_ns;
    now_ = now;
  }
  // No other iteration begins from now on.
  void keep_open() { open_ = true; }
  void end(Engine& engine) {
    engine.record_traffic(read_bytes_, written_bytes_);
    read_bytes_ = written_bytes_ = 0;
    worked_bytes_ = 0;
    open_ = false;
  }

  // Returns whether the iteration has done enough, and should end.
  bool did_read(size_t bytes) {
    read_bytes_ += bytes;
    worked_bytes_ += bytes;
    return worked_bytes_ >= kMostBytes;
  }
  // Work that cost as much time as requests of so many bytes.
  void did_work(size_t bytes) { worked_bytes_ += bytes; }
  void did_write(size_t bytes) { written_bytes_ += bytes; }

 private:
  bool open_ = false;
  Now now_;
  uint64_t began_ns_ = 0;
  size_t worked_bytes_ = 0;
  uint64_t read_bytes_ = 0;  // not yet reported to the engine
  uint64_t written_bytes_ = 0;
};

}  // namespace holdfast
