// Notes of holds: on disk, in memory, and those that the command makes. And the table of closed
// connections, with which LOCKS INFO shows where a hold is from.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "cli/note.h"
#include "core/codec/hold_codec.h"
#include "core/codec/journal_record.h"
#include "core/codec/rdb_writer.h"
#include "core/persist/load_snapshot.h"
#include "core/state/closed_conns.h"
#include "core/state/memory_use.h"
#include "holdfast/client.h"
#include "session.h"
#include "state_text.h"

namespace holdfast {
namespace {

uint64_t used_bytes(Engine& engine) { return used_memory_bytes(engine.state()); }

// Returns how many bytes of memory the requests take with a note instead of without.
int64_t bytes_of_notes(const std::vector<std::vector<std::string>>& requests, const std::string& note) {
  std::vector<uint64_t> used;
  for (const bool noted : {false, true}) {
    Config config = session_config();
    config.limits.history_events = 0;  // it has copies of notes
    Engine engine(config);
    std::vector<std::unique_ptr<TestClient>> clients;
    for (std::vector<std::string> words : requests) {
      if (noted) words.insert(words.end(), {"NOTE", note});
      clients.push_back(std::make_unique<TestClient>(engine));
      clients.back()->ask(words);
    }
    used.push_back(used_bytes(engine));
  }
  return static_cast<int64_t>(used[1]) - static_cast<int64_t>(used[0]);
}

bool has_note(Engine& engine, const std::string& key, const std::string& note) {
  TestClient c(engine);
  const std::string field = "$4\r\nnote\r\n$" + std::to_string(note.size()) + "\r\n" + note + "\r\n";
  return c.ask({"LOCKS", "INFO", key}).find(field) != std::string::npos;
}

// An RDB file with the hashes that the scripts on Redis write.
class ScriptFile {
 public:
  ScriptFile() { rdb_.header(); }
  void string(std::string_view key, std::string_view value) { rdb_.string(key, value); }
  void hash(std::string_view key, const std::vector<std::pair<std::string, std::string>>& fields) {
    rdb_.begin_hash(key, fields.size());
    for (const auto& [field, value] : fields) rdb_.field(field, value);
  }
  void load(Engine& engine) {
    rdb_.end();
    std::string file = out_;
    for (int i = 0; i < 8; ++i) file += '\0';  // no checksum
    Restore restore(engine.state(), session_time(0), false);
    REQUIRE(restore.feed(file));
    REQUIRE(restore.finish());
    engine.finish_loading(session_time(0));
  }

 private:
  std::string out_;
  RdbWriter rdb_{out_};
};

}  // namespace

TEST_CASE("note: a hold with a note is read as it was written, and a hold of an older file has none") {
  SavedHold hold{{7}, {50}, 1000, {70}, 3, true, "why"};
  std::string bytes;
  put_hold(bytes, hold);
  ByteReader in(bytes);
  const SavedHold read = read_hold(in);
  CHECK((in.ok() && in.at_end()));
  CHECK(read.note == "why");
  CHECK(read.lease == 3);
  // Flags 0 to 4, then held-since, token, TTL, delay and lease: as version 1 of the journal writes it.
  ByteReader old(std::string_view("\x1f\x05\x07\x32\x46\x03", 6));
  const SavedHold without = read_hold(old);
  CHECK((old.ok() && old.at_end()));
  CHECK(without.note.empty());
  CHECK(without.token.value == 7);
  CHECK(without.session);
}

TEST_CASE("note: the text of a token key is read as it was written, and other texts are not") {
  const std::string note("a \0\r\n", 5);
  const auto read = read_note_text(note_text({7}, note));
  REQUIRE(read);
  CHECK(read->token.value == 7);
  CHECK(read->note == note);
  CHECK(read_note_text("7 ")->note.empty());
  for (const char* wrong : {"", "7", "x why", "-1 why", " why", "9007199254740992 why"}) {
    CHECK_FALSE(read_note_text(wrong));
  }
}

TEST_CASE("note: the notes that scripts wrote on Redis are restored with the holds that they are for") {
  Engine engine(session_config());
  ScriptFile file;
  file.string("k", "alice");
  file.hash(token_key("k"), {{"of", "k"},
                             {"last", "9"},
                             {"owner", "522b276a356bdf39013dfabea2cd43e141ecc9e8"},
                             {"hold", "9 1 -1 0 1000000000000 0 0 0"},
                             {"n:alice", "9 exclusive"}});
  file.hash("s", {{"holdfast:lock", "1"},
                  {"o:alice", "4 4294967295 -1 0 1000000000000 0 0 0"},
                  {"o:bob", "5 4294967295 -1 0 1000000000000 0 0 0"}});
  file.hash(token_key("s"), {{"of", "s"}, {"last", "5"}, {"n:alice", "4 shared"}, {"n:bob", "3 earlier"}});
  file.load(engine);
  CHECK(has_note(engine, "k", "exclusive"));
  CHECK(has_note(engine, "s", "shared"));
  CHECK(has_note(engine, "s", ""));
  CHECK_FALSE(has_note(engine, "s", "earlier"));  // of an earlier hold of bob
  CHECK_FALSE(TestClient(engine).ask({"EXISTS", token_key("k"), token_key("s")}) != ":0\r\n");
}

TEST_CASE("note: the memory of notes counts while the hold or the wait lasts") {
  const std::string note(256, 'n');
  CHECK(bytes_of_notes({{"LOCK", "k", "alice", "0", "SHARED"}}, note) == 256);
  CHECK(bytes_of_notes({{"LOCK", "k", "alice", "0", "DELAY", "5"}}, note) == 256);
  CHECK(bytes_of_notes({{"LOCK", "k", "alice", "0", "DELAY", "5"},
                        {"LOCK", "k", "bob", "0", "WAIT", "0"},
                        {"LOCK", "k", "carol", "0", "WAIT", "0"}},
                       note) == 3 * 256);
  Engine engine(session_config());
  TestClient c(engine);
  c.must({"LOCK", "warm", "alice", "0", "SHARED"});
  c.must({"UNLOCK", "warm", "alice"});
  for (const char* owner : {"alice", "bob"}) c.must({"LOCK", "s", owner, "0", "SHARED", "NOTE", note});
  c.must({"LOCK", "k", "alice", "0", "NOTE", note});
  c.must({"LOCK", "k", "alice", "0", "SHARED"});
  c.must({"LOCK", "k", "alice", "0"});
  const EngineState& s = engine.state();
  CHECK(s.holders.note_bytes == 2 * 256);
  CHECK(s.attachments.note_bytes == 256);
  c.must({"LOCK", "k", "alice", "0", "NOTE", "short"});
  CHECK(s.attachments.note_bytes == 5);
  for (const char* owner : {"alice", "bob"}) c.must({"UNLOCK", "s", owner});
  c.must({"DEL", "k"});
  CHECK(s.holders.note_bytes == 0);
  CHECK(s.attachments.note_bytes == 0);
}

TEST_CASE("closed connections: the newest 10000 are kept") {
  ClosedConns closed;
  for (uint64_t n = 1; n <= ClosedConns::kMost; ++n)
    closed.add({n, {}, "addr" + std::to_string(n), "name"});
  CHECK(closed.size() == ClosedConns::kMost);
  REQUIRE(closed.find(1) != nullptr);
  CHECK(closed.find(1)->addr == "addr1");
  closed.add({ClosedConns::kMost + 1, {}, "one more", ""});
  CHECK(closed.size() == ClosedConns::kMost);
  CHECK(closed.find(1) == nullptr);
  CHECK(closed.find(2) != nullptr);
  CHECK(closed.find(ClosedConns::kMost + 1)->addr == "one more");
}

TEST_CASE("closed connections: their bytes are limited") {
  ClosedConns closed;
  for (uint64_t n = 1; n <= 100; ++n) closed.add({n, {}, "addr", std::string(100000, 'n')});
  CHECK(closed.bytes() <= ClosedConns::kMostBytes);
  CHECK(closed.bytes() > ClosedConns::kMostBytes - 101000);
  CHECK(closed.find(100) != nullptr);
  closed.add({101, {}, "addr", std::string(ClosedConns::kMostBytes, 'n')});
  CHECK(closed.find(101) == nullptr);
  CHECK(closed.find(100) != nullptr);
}

TEST_CASE("closed connections: one that only read is not kept") {
  Engine engine(session_config());
  TestClient reader(engine);
  reader.must({"GET", "k"});
  reader.disconnect();
  CHECK(engine.state().conns.closed().size() == 0);
  TestClient writer(engine);
  writer.must({"LOCK", "k", "alice", "0"});
  writer.disconnect();
  CHECK(engine.state().conns.closed().size() == 1);
}

TEST_CASE("note of the command: it is cut before a character that does not fit") {
  CHECK(cut_at_character("abc", 3) == "abc");
  CHECK(cut_at_character("abcd", 3) == "abc");
  CHECK(cut_at_character("ab\xc3\xa9", 4) == "ab\xc3\xa9");
  CHECK(cut_at_character("ab\xc3\xa9", 3) == "ab");
  CHECK(cut_at_character("a\xf0\x9f\x94\x92", 4) == "a");
  CHECK(cut_at_character("\x80\x80", 1).empty());
}

TEST_CASE("note of the command: it has the program's name without folder, and at most 256 bytes") {
  const std::string note = default_note("/usr/bin/backup");
  CHECK(note.ends_with("] backup"));
  CHECK(note.find('@') != std::string::npos);
  CHECK(default_note(std::string(300, 'x')).size() == LockOptions::kLongestNote);
}

}  // namespace holdfast
