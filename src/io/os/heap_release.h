// Gives free memory of the C library's heap back to the system, a piece at a time. The C library itself
// would do so at once, when the last block at the end of the heap is freed: 100 MiB take 10 ms. So the
// server forbids that (server.cc). The heap does not shrink: only the pages of its free blocks go. One
// thread uses it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace holdfast {

class HeapRelease {
 public:
  // Smaller than a block that the C library maps separately (server.cc), so that it is a part of the heap.
  static constexpr size_t kPieceBytes = size_t{200} << 10U;

  HeapRelease() = default;
  HeapRelease(const HeapRelease&) = delete;
  HeapRelease& operator=(const HeapRelease&) = delete;
  ~HeapRelease();

  // Begins to release at most `bytes`. Free memory in blocks of less than kPieceBytes stays.
  void begin(uint64_t bytes) { pieces_left_ = bytes / kPieceBytes; }
  // Does the next part, of less than 0.1 ms. Returns true if it was the last.
  bool step();

 private:
  // The first bytes of a piece.
  struct Piece {
    Piece* next;
  };
  bool take_piece();
  void free_pieces(size_t most);

  uint64_t pieces_left_ = 0;  // to take
  Piece* taken_ = nullptr;    // list of the pieces whose pages are released
};

}  // namespace holdfast
