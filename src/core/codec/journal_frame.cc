// Writes frames in place and reads them in place.
#include "core/codec/journal_frame.h"

#include <cassert>
#include <utility>

#include "core/base/bytes.h"
#include "core/base/checksum.h"

namespace holdfast {

namespace {

constexpr std::string_view kName = "HOLDFAST JOURNAL ";
constexpr std::string_view kOldJournalMagic = "HOLDFAST JOURNAL 1\n";
constexpr std::string_view kJournalMagic = "HOLDFAST JOURNAL 2\n";
static_assert(kOldJournalMagic.size() == kJournalMagic.size());
constexpr size_t kNumberAt = kJournalMagic.size();
constexpr size_t kFirstAt = kNumberAt + 8;
constexpr size_t kHeadCrcAt = kFirstAt + 8;
static_assert(kHeadCrcAt + 4 == kJournalHeadBytes);

constexpr std::string_view kFrameMagic("\xF4\x8A\x1D\xE5", 4);
constexpr size_t kCrcAt = kFrameMagic.size();
constexpr size_t kSizeAt = kCrcAt + 4;
constexpr size_t kSequenceAt = kSizeAt + 4;
static_assert(kSequenceAt + 8 == kFrameHeadBytes);

template <class T>
void put_at(std::string& out, size_t at, T n) {
  for (size_t i = 0; i < sizeof n; ++i) out[at + i] = static_cast<char>((n >> (8 * i)) & 0xFFU);
}

bool is_good_head(std::string_view file) {
  const std::string_view magic = file.substr(0, kJournalMagic.size());
  return (magic == kJournalMagic || magic == kOldJournalMagic) && file.size() >= kJournalHeadBytes &&
         read_at<uint32_t>(file, kHeadCrcAt) == crc32c(file.substr(0, kHeadCrcAt));
}

// Returns the version in a head; 0 if there is none.
uint32_t version_of(std::string_view file) {
  constexpr size_t kMostDigits = 9;
  if (file.substr(0, kName.size()) != kName) return 0;
  const std::string_view rest = file.substr(kName.size(), kMostDigits + 1);
  uint32_t version = 0;
  for (const char c : rest.substr(0, rest.find('\n'))) {
    if (c < '0' || c > '9') return 0;
    version = version * 10 + static_cast<uint32_t>(c - '0');
  }
  return rest.find('\n') == std::string_view::npos ? 0 : version;
}

// Whether only the version of the head is bad. A bad bit must not make the user look for a newer program.
bool is_head_but_for_version(std::string_view file) {
  if (file.size() < kJournalHeadBytes) return false;
  const std::string_view rest = file.substr(kJournalMagic.size(), kJournalHeadBytes - kJournalMagic.size());
  return is_good_head(std::string(kJournalMagic).append(rest)) ||
         is_good_head(std::string(kOldJournalMagic).append(rest));
}

// Returns why there is no frame at `offset`; nullptr if there is one.
const char* fault_at(std::string_view file, size_t offset) {
  const std::string_view rest = file.substr(offset);
  if (rest.substr(0, kFrameMagic.size()) != kFrameMagic) return "no frame begins here";
  if (rest.size() < kFrameHeadBytes) return "the frame's head is incomplete";
  const uint64_t size = read_at<uint32_t>(rest, kSizeAt);
  if (size > rest.size() - kFrameHeadBytes) return "the frame exceeds the end of the file";
  const std::string_view summed = rest.substr(kSizeAt, kFrameHeadBytes - kSizeAt + size);
  return read_at<uint32_t>(rest, kCrcAt) == crc32c(summed) ? nullptr : "the frame's checksum is wrong";
}

uint64_t sequence_at(std::string_view file, size_t offset) {
  return read_at<uint64_t>(file, offset + kSequenceAt);
}

JournalFrame frame_at(std::string_view file, size_t offset) {
  const size_t size = read_at<uint32_t>(file, offset + kSizeAt);
  return {offset, sequence_at(file, offset), file.substr(offset + kFrameHeadBytes, size)};
}

}  // namespace

void append_journal_head(std::string& out, uint64_t number, uint64_t first_sequence) {
  std::string head(kJournalMagic);
  head.resize(kJournalHeadBytes);
  put_at(head, kNumberAt, number);
  put_at(head, kFirstAt, first_sequence);
  put_at(head, kHeadCrcAt, crc32c(std::string_view(head).substr(0, kHeadCrcAt)));
  out += head;
}

size_t begin_frame(std::string& out) {
  const size_t frame = out.size();
  out.append(kFrameMagic).append(kFrameHeadBytes - kFrameMagic.size(), '\0');
  return frame;
}

bool end_frame(std::string& out, size_t frame, uint64_t sequence) {
  assert(out.size() >= frame + kFrameHeadBytes);
  const uint64_t size = out.size() - frame - kFrameHeadBytes;
  if (size > kMaxFramePayloadBytes) return false;
  put_at(out, frame + kSizeAt, static_cast<uint32_t>(size));
  put_at(out, frame + kSequenceAt, sequence);
  put_at(out, frame + kCrcAt, crc32c(std::string_view(out).substr(frame + kSizeAt)));
  return true;
}

JournalScanner::JournalScanner(std::string_view file) : file_(file) { read_head(); }

void JournalScanner::read_head() {
  if (is_good_head(file_)) {
    has_head_ = true;
    number_ = read_at<uint64_t>(file_, kNumberAt);
    first_ = due_ = read_at<uint64_t>(file_, kFirstAt);
    offset_ = verdict_.offset = kJournalHeadBytes;
    return;
  }
  const uint32_t version = version_of(file_);
  if (version > kJournalVersion && !is_head_but_for_version(file_)) return stop_for_newer(version);
  stop_at_bad(file_.size() < kJournalHeadBytes ? "the file's head is incomplete"
                                               : "the file's head is damaged");
}

std::optional<JournalFrame> JournalScanner::next() {
  if (over_) return std::nullopt;
  if (offset_ == file_.size()) {
    over_ = true;
    return std::nullopt;
  }
  if (const char* why = fault_at(file_, offset_); why != nullptr) return stop_at_bad(why), std::nullopt;
  const JournalFrame frame = frame_at(file_, offset_);
  if (frame.sequence != due_) return stop_at_gap(frame), std::nullopt;
  ++due_;
  offset_ = verdict_.offset = frame.end();
  return frame;
}

void JournalScanner::stop(JournalState state, std::string why) {
  over_ = true;
  verdict_.state = state;
  verdict_.offset = offset_;
  verdict_.bytes = file_.size() - offset_;
  verdict_.why = std::move(why);
}

void JournalScanner::stop_for_newer(uint32_t version) {
  stop(JournalState::kNewer,
       "the journal has version " + std::to_string(version) + ", written by a newer version of Holdfast");
  verdict_.version = version;
}

void JournalScanner::stop_at_gap(const JournalFrame& frame) {
  stop(JournalState::kDamaged, "the frame has sequence " + std::to_string(frame.sequence) + " where " +
                                   std::to_string(due_) + " was expected");
  verdict_.next_offset = frame.offset;
  verdict_.next_sequence = frame.sequence;
}

void JournalScanner::stop_at_bad(const char* why) {
  const Search search = find_frame();
  if (search.given_up) {
    return stop(JournalState::kDamaged, std::string(why) + ", and too many possible frames follow");
  }
  stop(search.frame ? JournalState::kDamaged : JournalState::kTorn, why);
  if (!search.frame) return;
  verdict_.next_offset = search.frame->offset;
  verdict_.next_sequence = search.frame->sequence;
}

JournalScanner::Search JournalScanner::find_frame() const {
  uint64_t budget_bytes = kSearchRounds * file_.size();
  for (size_t at = file_.find(kFrameMagic, offset_); at != std::string_view::npos;
       at = file_.find(kFrameMagic, at + 1)) {
    if (file_.size() - at < kFrameHeadBytes) break;
    const uint64_t size = read_at<uint32_t>(file_, at + kSizeAt);
    if (!may_follow(sequence_at(file_, at)) || size > file_.size() - at - kFrameHeadBytes) continue;
    if (size > budget_bytes) return {std::nullopt, true};
    budget_bytes -= size;
    if (fault_at(file_, at) == nullptr) return {frame_at(file_, at), false};
  }
  return {};
}

// The frame with sequence `due_` is bad, so a frame behind it has a larger one. The difference is unknown,
// because a part of the file may be missing.
bool JournalScanner::may_follow(uint64_t sequence) const { return !has_head_ || sequence > due_; }

}  // namespace holdfast
