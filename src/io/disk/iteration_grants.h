// Whether the present loop iteration has granted anything. Only then must its replies wait for a disk that
// fails: see Store::may_reply_to_others().
#pragma once

#include <cstdint>

namespace holdfast {

class Engine;

class IterationGrants {
 public:
  // Before the records of the engine are cleared. SAVE commits, too, so there may be several calls.
  void note_records(const Engine& engine);
  // A grant that ended in the same iteration has no record, but it gave a token.
  bool any(const Engine& engine) const;
  void end(const Engine& engine);

 private:
  bool recorded_ = false;
  uint64_t token_ = 0;  // the largest, at the end of the last iteration
  uint64_t ahead_serial_ = 0;
};

}  // namespace holdfast
