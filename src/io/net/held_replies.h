// Replies that wait for the disk, in the order in which they were made. Replies whose promises the same
// writes keep form a group, and leave together. Knows no sockets.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "core/base/types.h"
#include "io/disk/store.h"

namespace holdfast {

class HeldReplies {
 public:
  // A connection may send its output up to this position.
  struct Reply {
    ConnId id;
    uint64_t end;
  };
  // At most so many groups, so that a connection, which is in each group at most once, takes little memory
  // here. Then later replies join the last group, which may wait longer than its first replies need: until
  // the oldest group has left, and for the writes that begin then.
  static constexpr size_t kMaxGroups = 16;

  // Adds the output of a connection up to the position `end`. `last` is the number that add() returned for
  // this connection before; 0 if there is none. Returns a new number.
  uint64_t add(const Store::Promise& promise, ConnId id, uint64_t end, uint64_t last);

  // Takes the replies that may leave because their promises are kept, the oldest first.
  std::vector<Reply> take_kept(const Store& store, const Now& now);
  std::vector<Reply> take_all();

 private:
  struct Group {
    Store::Promise promise;
    std::vector<Reply> replies;
    uint64_t first;  // number of the first reply
  };
  bool joins_last(const Store::Promise& promise) const;

  std::deque<Group> groups_;
  uint64_t next_ = 1;  // number of the next reply
};

}  // namespace holdfast
