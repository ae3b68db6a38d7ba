// The loader of journals: it reads frames from any bytes, and replays records into an engine that stays
// consistent.
#include <algorithm>
#include <string>
#include <vector>

#include "core/codec/journal_frame.h"
#include "fuzz/engines.h"

namespace holdfast::fuzz {
namespace {

const Now kNow = time_at(0);

// Checks that the scanner's results are consistent for any bytes.
std::vector<std::string> scan(std::string_view file) {
  std::vector<std::string> payloads;
  JournalScanner scanner(file);
  uint64_t end = scanner.number() == 0 && scanner.first_sequence() == 0 ? 0 : kJournalHeadBytes;
  while (const auto frame = scanner.next()) {
    must(frame->offset == std::max<uint64_t>(end, kJournalHeadBytes), "frames follow one another");
    end = frame->end();
    payloads.emplace_back(frame->payload);
  }
  const JournalVerdict& verdict = scanner.verdict();
  must(verdict.offset <= file.size(), "the verdict is about the file");
  if (verdict.state == JournalState::kClean) {
    must(verdict.why.empty() && verdict.offset == file.size(), "clean means all of it");
    return payloads;
  }
  must(!verdict.why.empty(), "what is wrong is told");
  must(verdict.offset + verdict.bytes == file.size(), "the rest is all that is left");
  must(verdict.offset == end, "all before it was given");
  must(verdict.next_offset == 0 || verdict.next_offset >= verdict.offset, "what is next is behind it");
  return payloads;
}

void replay(const std::vector<std::string>& payloads, bool saved) {
  Engine engine(engine_config());
  for (const std::string& payload : payloads) {
    if (!engine.replay(payload, kNow).empty()) break;
  }
  finish_restore(engine, kNow);
  if (saved) {
    Engine again(engine_config());
    must(restore(again, snapshot_of(engine, kNow), kNow).empty(), "a snapshot of it is read");
    must(state_text(again, kNow) == state_text(engine, kNow), "and gives the same state");
  }
  let_expire(engine, 1000000);
}

struct Frames {
  std::string file;
  std::vector<std::string> payloads;
  bool good = true;  // it has no fault
};

// Makes a file of frames, which are valid except where the bytes choose a fault.
Frames make_frames(Source& source) {
  Frames made;
  uint64_t sequence = source.below(4);
  append_journal_head(made.file, 1 + source.below(3), sequence);
  while (!source.empty()) {
    const size_t kind = source.below(12);
    const std::string payload(source.text());
    if (kind == 0) made.file.append(payload);
    if (kind == 1) sequence += 1 + source.below(3);
    const size_t frame = begin_frame(made.file);
    made.file.append(payload);
    must(end_frame(made.file, frame, sequence++), "a small frame fits");
    if (kind == 2)
      made.file.resize(made.file.size() - std::min(made.file.size() - frame, source.below(30)));
    if (kind == 3) made.file[made.file.size() - 1 - source.below(20)] ^= '\x20';
    if (kind <= 3) made.good = false;
    if (made.good) made.payloads.push_back(payload);
  }
  return made;
}

}  // namespace

void fuzz_journal(std::string_view bytes) {
  Source source(bytes);
  const uint8_t first = source.byte();
  const size_t mode = first % 3;
  const bool saved = first >= 128;
  if (mode == 0) {
    replay(scan(source.rest()), saved);
  } else if (mode == 1) {
    replay({std::string(source.rest())}, saved);
  } else {
    const Frames made = make_frames(source);
    const std::vector<std::string> payloads = scan(made.file);
    must(payloads.size() >= made.payloads.size(), "what is before the damage is given");
    must(std::equal(made.payloads.begin(), made.payloads.end(), payloads.begin()), "as it was written");
    if (made.good) must(payloads == made.payloads, "and nothing else");
    replay(payloads, saved);
  }
}

}  // namespace holdfast::fuzz
