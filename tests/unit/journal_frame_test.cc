// A journal file that is cut or has a flipped bit never yields a payload that was not written. The result
// distinguishes a crash from damage.
#include "core/codec/journal_frame.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/base/checksum.h"

namespace holdfast {

namespace {

constexpr uint64_t kNumber = 7;
constexpr uint64_t kFirst = 1000;

void append_frame(std::string& out, uint64_t sequence, std::string_view payload) {
  const size_t frame = begin_frame(out);
  out += payload;
  REQUIRE(end_frame(out, frame, sequence));
}

struct WrittenJournal {
  std::string bytes;
  std::vector<std::string> payloads;
  std::vector<uint64_t> ends;  // of the head, then of each frame

  explicit WrittenJournal(std::vector<std::string> written) : payloads(std::move(written)) {
    append_journal_head(bytes, kNumber, kFirst);
    ends.push_back(bytes.size());
    for (const std::string& payload : payloads) {
      append_frame(bytes, kFirst + ends.size() - 1, payload);
      ends.push_back(bytes.size());
    }
  }
  // Returns the number of frames that end at or before `offset`.
  size_t frames_before(uint64_t offset) const {
    size_t n = 0;
    while (n < payloads.size() && ends[n + 1] <= offset) ++n;
    return n;
  }
};

const WrittenJournal& sample() {
  static const WrittenJournal journal(
      {"first", std::string(60, '\0'), "", "the fourth\r\n", std::string(33, '\xF4')});
  return journal;
}

struct Scanned {
  std::vector<std::string> payloads;
  JournalVerdict verdict;
  uint64_t number = 0;
  uint64_t next_sequence = 0;
};

Scanned scan(std::string_view file) {
  Scanned scanned;
  JournalScanner scanner(file);
  while (const std::optional<JournalFrame> frame = scanner.next()) {
    REQUIRE(frame->sequence == scanner.first_sequence() + scanned.payloads.size());
    REQUIRE(frame->end() == scanner.verdict().offset);
    scanned.payloads.emplace_back(frame->payload);
  }
  REQUIRE(!scanner.next());
  scanned.verdict = scanner.verdict();
  scanned.number = scanner.number();
  scanned.next_sequence = scanner.next_sequence();
  REQUIRE(scanned.verdict.bytes == file.size() - scanned.verdict.offset);
  REQUIRE((scanned.verdict.state == JournalState::kClean) == scanned.verdict.why.empty());
  return scanned;
}

std::vector<std::string> first_of(const WrittenJournal& journal, size_t n) {
  return {journal.payloads.begin(), journal.payloads.begin() + static_cast<ptrdiff_t>(n)};
}

std::string patched(std::string bytes, size_t at, std::string_view with) {
  return bytes.replace(at, with.size(), with);
}

}  // namespace

TEST_CASE("journal file: frames are read in their order, with number and sequences") {
  const Scanned scanned = scan(sample().bytes);
  CHECK(scanned.payloads == sample().payloads);
  CHECK(scanned.number == kNumber);
  CHECK(scanned.next_sequence == kFirst + sample().payloads.size());
  CHECK(scanned.verdict.state == JournalState::kClean);
  CHECK(scanned.verdict.offset == sample().bytes.size());
}

TEST_CASE("journal file: the bytes are those of the grammar") {
  std::string file;
  append_journal_head(file, 0x0102, 3);
  CHECK(file.substr(0, 35) ==
        "HOLDFAST JOURNAL 2\n" + std::string("\x02\x01\0\0\0\0\0\0\x03\0\0\0\0\0\0\0", 16));
  const size_t frame = begin_frame(file);
  file += "ab";
  REQUIRE(end_frame(file, frame, 3));
  CHECK(file.substr(frame, 4) == "\xF4\x8A\x1D\xE5");
  CHECK(file.substr(frame + 8) == std::string("\x02\0\0\0\x03\0\0\0\0\0\0\0ab", 14));
  const uint32_t crc = crc32c(file.substr(frame + 8));
  CHECK(file.substr(frame + 4, 4) == std::string{static_cast<char>(crc), static_cast<char>(crc >> 8U),
                                                 static_cast<char>(crc >> 16U),
                                                 static_cast<char>(crc >> 24U)});
}

TEST_CASE("journal file: a file with only a head is clean and has no frames") {
  const Scanned scanned = scan(WrittenJournal({}).bytes);
  CHECK(scanned.payloads.empty());
  CHECK(scanned.next_sequence == kFirst);
  CHECK(scanned.verdict.state == JournalState::kClean);
}

TEST_CASE("journal file: cut at any byte, the whole frames are read and the rest is torn") {
  const WrittenJournal& journal = sample();
  for (size_t size = 0; size < journal.bytes.size(); ++size) {
    INFO("cut at " << size);
    const Scanned scanned = scan(std::string_view(journal.bytes).substr(0, size));
    const size_t whole = journal.frames_before(size);
    const uint64_t good = size < kJournalHeadBytes ? 0 : journal.ends[whole];
    REQUIRE(scanned.payloads == first_of(journal, whole));
    REQUIRE(scanned.verdict.offset == good);
    REQUIRE(scanned.verdict.state ==
            (good == size && size > 0 ? JournalState::kClean : JournalState::kTorn));
  }
}

TEST_CASE(
    "journal file: a bit flipped in a frame before others is damage, reported with its start and end") {
  const WrittenJournal& journal = sample();
  for (size_t at = kJournalHeadBytes; at < journal.ends[journal.payloads.size() - 1]; ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      INFO("byte " << at << " bit " << bit);
      const char flipped = static_cast<char>(static_cast<uint8_t>(journal.bytes[at]) ^ (1U << bit));
      const std::string bytes = patched(journal.bytes, at, std::string(1, flipped));
      const Scanned scanned = scan(bytes);
      const size_t whole = journal.frames_before(at);
      REQUIRE(scanned.payloads == first_of(journal, whole));
      REQUIRE(scanned.verdict.state == JournalState::kDamaged);
      REQUIRE(scanned.verdict.offset == journal.ends[whole]);
      REQUIRE(scanned.verdict.next_offset == journal.ends[whole + 1]);
      REQUIRE(scanned.verdict.next_sequence == kFirst + whole + 1);
    }
  }
}

TEST_CASE(
    "journal file: a bit flipped in the last frame looks like a crash, and only that frame is dropped") {
  const WrittenJournal& journal = sample();
  const size_t last = journal.payloads.size() - 1;
  for (size_t at = journal.ends[last]; at < journal.bytes.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      INFO("byte " << at << " bit " << bit);
      const char flipped = static_cast<char>(static_cast<uint8_t>(journal.bytes[at]) ^ (1U << bit));
      const Scanned scanned = scan(patched(journal.bytes, at, std::string(1, flipped)));
      REQUIRE(scanned.payloads == first_of(journal, last));
      REQUIRE(scanned.verdict.state == JournalState::kTorn);
      REQUIRE(scanned.verdict.offset == journal.ends[last]);
    }
  }
}

TEST_CASE("journal file: a bit flipped in the head is damage at its start, never a newer version") {
  const WrittenJournal& journal = sample();
  for (size_t at = 0; at < kJournalHeadBytes; ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      INFO("byte " << at << " bit " << bit);
      const char flipped = static_cast<char>(static_cast<uint8_t>(journal.bytes[at]) ^ (1U << bit));
      const Scanned scanned = scan(patched(journal.bytes, at, std::string(1, flipped)));
      REQUIRE(scanned.payloads.empty());
      REQUIRE(scanned.number == 0);
      REQUIRE(scanned.verdict.state == JournalState::kDamaged);
      REQUIRE(scanned.verdict.offset == 0);
      REQUIRE(scanned.verdict.next_offset == kJournalHeadBytes);
    }
  }
}

TEST_CASE("journal file: a file that a crash left as zeroes, or shorter than a head, is torn at 0") {
  for (const size_t size : {size_t{0}, size_t{1}, kJournalHeadBytes, size_t{512}, size_t{4096}}) {
    const Scanned scanned = scan(std::string(size, '\0'));
    CHECK(scanned.verdict.state == JournalState::kTorn);
    CHECK(scanned.verdict.offset == 0);
    CHECK(scanned.verdict.bytes == size);
  }
}

TEST_CASE("journal file: zeroes or garbage behind the last frame are torn") {
  const WrittenJournal& journal = sample();
  for (const char fill : {'\0', 'x', '\xF4'}) {
    const Scanned scanned = scan(journal.bytes + std::string(512, fill));
    CHECK(scanned.payloads == journal.payloads);
    CHECK(scanned.verdict.state == JournalState::kTorn);
    CHECK(scanned.verdict.bytes == 512);
  }
}

// Returns the file with the head of version 1.
static std::string with_old_head(std::string file) {
  file[file.find('2')] = '1';
  const uint32_t crc = crc32c(file.substr(0, kJournalHeadBytes - 4));
  for (size_t i = 0; i < 4; ++i) file[kJournalHeadBytes - 4 + i] = static_cast<char>(crc >> (8 * i));
  return file;
}

TEST_CASE(
    "journal file: a file of version 1 is read, and damage to its head is not taken for a newer version") {
  const std::string old = with_old_head(sample().bytes);
  CHECK(old.substr(0, 19) == "HOLDFAST JOURNAL 1\n");
  const Scanned scanned = scan(old);
  CHECK(scanned.payloads == sample().payloads);
  CHECK(scanned.number == kNumber);
  CHECK(scanned.verdict.state == JournalState::kClean);
  std::string damaged = old;
  damaged[17] = '9';
  CHECK(scan(damaged).verdict.state == JournalState::kDamaged);
}

TEST_CASE("journal file: a newer version is named, also where its head is longer or ends the file") {
  CHECK(scan("HOLDFAST JOURNAL 3\n").verdict.state == JournalState::kNewer);
  const Scanned scanned = scan("HOLDFAST JOURNAL 10\nwhatever a head then has, and then some frames");
  CHECK(scanned.verdict.state == JournalState::kNewer);
  CHECK(scanned.verdict.version == 10);
  CHECK(scanned.verdict.why == "the journal has version 10, written by a newer version of Holdfast");
  for (const char* other :
       {"HOLDFAST JOURNAL 0\n", "HOLDFAST JOURNAL -2\n", "HOLDFAST JOURNAL \n", "HOLDFAST JOURNAL 3",
        "HOLDFAST JOURNAL 9999999999\n", "HOLDFAST JOURNAL 3x\n"}) {
    CHECK(scan(other).verdict.state == JournalState::kTorn);
  }
}

TEST_CASE("journal file: a missing, duplicate or reordered frame is damage at its place") {
  for (const uint64_t sequence : {kFirst + 2, kFirst, kFirst - 1, uint64_t{0}, UINT64_MAX}) {
    WrittenJournal journal({"first"});
    append_frame(journal.bytes, sequence, "second");
    append_frame(journal.bytes, sequence + 1, "third");
    const Scanned scanned = scan(journal.bytes);
    CHECK(scanned.payloads == journal.payloads);
    CHECK(scanned.verdict.state == JournalState::kDamaged);
    CHECK(scanned.verdict.offset == journal.ends[1]);
    CHECK(scanned.verdict.next_offset == journal.ends[1]);
    CHECK(scanned.verdict.next_sequence == sequence);
  }
}

TEST_CASE("journal file: a piece removed from the middle is damage, wherever it begins and ends") {
  const WrittenJournal& journal = sample();
  const size_t last = journal.ends[journal.payloads.size() - 1];  // the frame that must remain
  for (size_t from = 0; from < last; from += 3) {
    for (size_t to = from + 1; to <= last; to += 5) {
      std::string bytes = journal.bytes;
      const Scanned scanned = scan(bytes.erase(from, to - from));
      INFO("without [" << from << ", " << to << ")");
      REQUIRE(scanned.verdict.state == JournalState::kDamaged);
      REQUIRE(scanned.payloads == first_of(journal, scanned.payloads.size()));
    }
  }
}

TEST_CASE("journal file: an older journal stored as a value does not turn a torn tail into damage") {
  std::string older;
  append_journal_head(older, kNumber - 1, kFirst - 2);
  append_frame(older, kFirst - 2, "old");
  append_frame(older, kFirst - 1, "old too");
  WrittenJournal journal({"first", "SET backup " + older + "and so on"});
  const Scanned scanned = scan(std::string_view(journal.bytes).substr(0, journal.bytes.size() - 1));
  CHECK(scanned.payloads == first_of(journal, 1));
  CHECK(scanned.verdict.state == JournalState::kTorn);
}

TEST_CASE("journal file: forged heads cost a few passes over the file, and then it counts as damaged") {
  std::string bait;
  const size_t frame = begin_frame(bait);
  REQUIRE(end_frame(bait, frame, UINT64_MAX / 2));
  bait[9] = '\x10';  // of its size: it claims 4096 bytes, which its checksum does not cover
  WrittenJournal journal({"first"});
  const auto torn_with = [&](size_t baits) {
    std::string bytes = journal.bytes;
    for (size_t i = 0; i < baits; ++i) bytes += bait;
    return scan(bytes + std::string(4096, 'x')).verdict;
  };
  CHECK(torn_with(1).state == JournalState::kTorn);
  CHECK(torn_with(5).state == JournalState::kTorn);
  const JournalVerdict verdict = torn_with(20000);
  CHECK(verdict.state == JournalState::kDamaged);
  CHECK(verdict.offset == journal.ends[1]);
  CHECK(verdict.next_offset == 0);
}

TEST_CASE("journal file: a frame is appended behind the content of the buffer, and many in one") {
  std::string out = "sent before";
  const size_t before = out.size();
  append_journal_head(out, kNumber, kFirst);
  append_frame(out, kFirst, "a");
  append_frame(out, kFirst + 1, "b");
  const Scanned scanned = scan(std::string_view(out).substr(before));
  CHECK(scanned.payloads == std::vector<std::string>{"a", "b"});
  CHECK(out.substr(0, before) == "sent before");
}

}  // namespace holdfast
