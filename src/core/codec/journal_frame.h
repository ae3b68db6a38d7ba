// The format of a journal file: frames around payloads (journal.h says what is in those), and a scanner
// that tells what a crash has cut off from what has gone bad. Knows bytes only; reading and writing is the
// shell's.
//
//   file  = head { frame }
//   head  = "HOLDFAST JOURNAL 1\n"  u64 number  u64 first  u32 crc
//   frame = magic  u32 crc  u32 size  u64 sequence  payload
//
// Integers have their low byte first. `number` is the journal's, `first` the sequence of its first frame;
// each frame has one more than the frame before it, also across files, so that one that is missing shows.
// `magic` is four bytes that text does not have. Each crc is the CRC32C of what stands before it in the
// head, and of all that follows it in the frame.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast {

inline constexpr uint32_t kJournalVersion = 1;
inline constexpr size_t kJournalHeadBytes = 39;
inline constexpr size_t kFrameHeadBytes = 20;
inline constexpr uint64_t kMaxFramePayloadBytes = UINT32_MAX;
// How often as many bytes as the file has are summed at most, to find a good frame behind a bad one.
inline constexpr uint64_t kSearchRounds = 8;

void append_journal_head(std::string& out, uint64_t number, uint64_t first_sequence);

// A frame is made in place: the payload is appended to `out` behind its head, and is never copied. Returns
// where the frame begins, for end_frame.
[[nodiscard]] size_t begin_frame(std::string& out);
// All of `out` from the frame's head on is its payload. False: that is more than a frame may hold, and
// `out` is as it was.
[[nodiscard]] bool end_frame(std::string& out, size_t frame, uint64_t sequence);

struct JournalFrame {
  uint64_t offset = 0;  // of its head in the file
  uint64_t sequence = 0;
  std::string_view payload;  // of the file's bytes

  uint64_t end() const { return offset + kFrameHeadBytes + payload.size(); }
};

enum class JournalState {
  kClean,    // the last frame ends where the file ends
  kTorn,     // no frame follows the first bad byte: a crash has cut the last write, which may be dropped
  kDamaged,  // frames follow what is bad, so that is no crash's doing
  kNewer,    // a version of the format that this program does not know
};

struct JournalVerdict {
  JournalState state = JournalState::kClean;
  uint64_t offset = 0;  // all before it is good
  uint64_t bytes = 0;   // from there to the end of the file
  std::string why;      // what is wrong there, for a person; empty when clean
  // Damaged: where the next good frame begins, which is `offset` where only its sequence is not the one
  // that was due; 0 where that was not found out within kSearchRounds.
  uint64_t next_offset = 0;
  uint64_t next_sequence = 0;
  uint32_t version = 0;  // newer: the one that the file says it has
};

// Goes over a whole file. Stops for good at the first byte that is not as it must be, so that every payload
// it gives was written as it is, and right behind the one before. The file's bytes have to outlive it.
//
// A client may have put bytes that look like frames into a payload, which show when that one's frame is
// torn. An old journal kept as a value is told apart by its sequences; what was made to deceive is taken
// for damage, and costs no more than kSearchRounds.
class JournalScanner {
 public:
  explicit JournalScanner(std::string_view file);

  // Of the head; 0 where it is not good.
  uint64_t number() const { return number_; }
  uint64_t first_sequence() const { return first_; }

  // nullopt: there are no more. The verdict says why.
  std::optional<JournalFrame> next();
  // So far; final once next() gave nullopt.
  const JournalVerdict& verdict() const { return verdict_; }
  // What the frame after the last one has to have.
  uint64_t next_sequence() const { return due_; }

 private:
  void read_head();
  void stop_for_newer(uint32_t version);
  void stop_at_bad(const char* why);
  void stop_at_gap(const JournalFrame& frame);
  void stop(JournalState state, std::string why);
  struct Search {
    std::optional<JournalFrame> frame;
    bool given_up = false;
  };
  Search find_frame() const;
  bool may_follow(uint64_t sequence) const;

  std::string_view file_;
  bool has_head_ = false;
  bool over_ = false;
  uint64_t number_ = 0;
  uint64_t first_ = 0;
  uint64_t due_ = 0;     // sequence
  uint64_t offset_ = 0;  // where the next frame begins
  JournalVerdict verdict_;
};

}  // namespace holdfast
