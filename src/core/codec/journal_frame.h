// The format of a journal file: frames around payloads (journal_record.h describes the payloads), and a
// scanner that tells a write torn by a crash from damage. Knows bytes only; the shell reads and writes the
// file.
//
//   file  = head { frame }
//   head  = "HOLDFAST JOURNAL 2\n"  u64 number  u64 first  u32 crc
//   frame = magic  u32 crc  u32 size  u64 sequence  payload
//
// Integers have their low byte first. `number` is the journal's number, `first` the sequence of its first
// frame. The sequence grows by one with each frame, also across files, so that a missing frame is found.
// `magic` is four bytes that do not occur in text. The crc of a head is the CRC32C of all bytes before it;
// the crc of a frame is that of all bytes after it.
//
// Version 1 has the same frames; its holds have no notes. The scanner reads both.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast {

inline constexpr uint32_t kJournalVersion = 2;
inline constexpr size_t kJournalHeadBytes = 39;
inline constexpr size_t kFrameHeadBytes = 20;
inline constexpr uint64_t kMaxFramePayloadBytes = UINT32_MAX;
// The limit of the search for a good frame behind a bad one: it sums at most so many times the file's size.
inline constexpr uint64_t kSearchRounds = 8;

void append_journal_head(std::string& out, uint64_t number, uint64_t first_sequence);

// Begins a frame in place: the caller appends the payload to `out` behind the frame's head, so that it is
// never copied. Returns the position of the frame, for end_frame().
[[nodiscard]] size_t begin_frame(std::string& out);
// Ends a frame: all bytes of `out` behind the frame's head are its payload. Returns false if the payload is
// too large for a frame; `out` is then unchanged.
[[nodiscard]] bool end_frame(std::string& out, size_t frame, uint64_t sequence);

struct JournalFrame {
  uint64_t offset = 0;  // position of its head in the file
  uint64_t sequence = 0;
  std::string_view payload;  // a view of the file's bytes

  uint64_t end() const { return offset + kFrameHeadBytes + payload.size(); }
};

enum class JournalState {
  kClean,    // the last frame ends where the file ends
  kTorn,     // no frame follows the first bad byte: a crash tore the last write, which may be dropped
  kDamaged,  // frames follow the bad bytes, so a crash is not the cause
  kNewer,    // a version of the format that this program does not know
};

struct JournalVerdict {
  JournalState state = JournalState::kClean;
  uint64_t offset = 0;  // all bytes before it are good
  uint64_t bytes = 0;   // from there to the end of the file
  std::string why;      // the fault, for a person; empty if the file is clean
  // Damaged: where the next good frame begins. This is `offset` if only its sequence is wrong, and 0 if the
  // search ended at kSearchRounds.
  uint64_t next_offset = 0;
  uint64_t next_sequence = 0;
  uint32_t version = 0;  // newer: the version in the file's head
};

// Scans a whole file. It stops for good at the first bad byte. So every payload that it returns is exactly
// as written, and directly follows the one before. The file's bytes must outlive it.
//
// A client may have written bytes that look like frames into a payload. The scanner sees them if the frame
// around them is torn. It recognises the bytes of an old journal by their sequences. It takes bytes made to
// deceive it for damage, and they cost at most kSearchRounds.
class JournalScanner {
 public:
  explicit JournalScanner(std::string_view file);

  // From the head; 0 if the head is bad.
  uint64_t number() const { return number_; }
  uint64_t first_sequence() const { return first_; }

  // Returns the next frame, or nullopt at the end; the verdict then gives the reason.
  std::optional<JournalFrame> next();
  // The verdict so far; final after next() returned nullopt.
  const JournalVerdict& verdict() const { return verdict_; }
  // The sequence that the next frame must have.
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
