// Journals that are missing, or cut between two frames: how the store detects them, and the effects of a
// crash.
#include <string>

#include "core/codec/journal_frame.h"
#include "store_rig.h"

namespace holdfast {
namespace {

using Words = Process::Words;

// Removes the last `frames` frames.
void cut_frames(std::string& journal, size_t frames) {
  std::vector<size_t> ends;
  JournalScanner scanner(journal);
  while (const auto frame = scanner.next()) ends.push_back(frame->end());
  REQUIRE(ends.size() > frames);
  journal.resize(ends[ends.size() - frames - 1]);
}

// Leaves two journals, as a failed snapshot does: "a" and "b" in the first, "c" in the second.
void leave_two_journals(CrashFiles& disk) {
  Process server(disk, {"--save", ""});
  for (const char* key : {"a", "b"}) CHECK(is_granted(server.ask({"LOCK", key, "alice", "600000"})));
  disk.fail_write(2, EIO);  // after the head of the second journal
  CHECK(server.ask({"SAVE"}).starts_with("-ERR"));
  CHECK(is_granted(server.ask({"LOCK", "c", "alice", "600000"})));
  server.kill();
  REQUIRE(disk.bytes("journal.1").size() > kJournalHeadBytes);
  REQUIRE(disk.bytes("journal.2").size() > kJournalHeadBytes);
}

// A process acquires a lock and is killed; then all its files but meta are removed.
void leave_only_meta(CrashFiles& disk) {
  {
    Process server(disk, {"--save", ""});
    CHECK(is_granted(server.ask({"LOCK", "a", "alice", "600000"})));
    server.kill();
  }
  REQUIRE(disk.remove("journal.1"));
}

}  // namespace

TEST_CASE("store: a missing journal between two others refuses the start, unless the machine has crashed") {
  for (const bool crashed : {false, true}) {
    CAPTURE(crashed);
    set_rig_clock(0);
    CrashFiles disk;
    leave_two_journals(disk);
    {
      Process server(disk, {"--save", ""});
      disk.fail_write(2, EIO);  // makes a third journal, but no snapshot
      CHECK(server.ask({"SAVE"}).starts_with("-ERR"));
      CHECK(is_granted(server.ask({"LOCK", "d", "alice", "600000"})));
      server.kill();
    }
    REQUIRE(disk.remove("journal.2"));
    const std::string third = disk.bytes("journal.3");
    Meta meta = meta_of(disk);
    if (crashed) meta.boot_id = meta.clock_boot_id = "another";
    disk.put("meta", format_meta(meta));
    Process again(disk, {"--recovery-wait", "0"});
    CHECK((again.failure() == "") == crashed);
    CHECK(disk.bytes(crashed ? "journal.3.damaged" : "journal.3") == third);
    if (crashed) CHECK(again.ask({"EXISTS", "a", "b", "c", "d"}) == ":2\r\n");
    if (!crashed) CHECK(again.failure().find("journal.2 is missing") != std::string::npos);
  }
}

TEST_CASE("store: a missing journal that the snapshot names refuses the start") {
  set_rig_clock(0);
  CrashFiles disk;
  {
    Process server(disk, {"--save", ""});
    CHECK(is_granted(server.ask({"LOCK", "a", "alice", "600000"})));
    CHECK(server.ask({"SAVE"}) == "+OK\r\n");
    CHECK(is_granted(server.ask({"LOCK", "b", "alice", "600000"})));
    server.kill();
  }
  REQUIRE(disk.remove("journal.2"));
  {
    Process refused(disk, {});
    CHECK(refused.failure().find("journal.2 is missing") != std::string::npos);
  }
  {
    CrashFiles other;  // the snapshot alone, as a copy in a new folder
    other.put("dump.rdb.gz", disk.bytes("dump.rdb.gz"));
    Process copy(other, {});
    REQUIRE(copy.failure() == "");
    CHECK(copy.ask({"EXISTS", "a", "b"}) == ":1\r\n");
  }
}

TEST_CASE("store: an empty file in place of the journal that the snapshot names makes the start wait") {
  for (const char* fsync : {"everysec", "always"}) {
    CAPTURE(fsync);
    set_rig_clock(0);
    CrashFiles disk;
    {
      Process server(disk, {"--save", "", "--appendfsync", fsync});
      CHECK(is_granted(server.ask({"LOCK", "a", "alice", "600000"})));
      CHECK(server.ask({"SAVE"}) == "+OK\r\n");
      CHECK(is_granted(server.ask({"LOCK", "b", "alice", "600000"})));
      server.kill();
    }
    disk.bytes("journal.2").clear();
    for (int start = 0; start < 2; ++start) {
      Process again(disk, {"--save", "", "--appendfsync", fsync});
      REQUIRE(again.failure() == "");
      CHECK(again.ask({"EXISTS", "a", "b"}) == ":1\r\n");
      CHECK(is_recovering(again.ask({"LOCK", "b", "bob", "600000"})));
      again.kill();
    }
    Process last(disk, {"--save", "", "--appendfsync", fsync});
    check_wait_ends_after(60, last);
  }
}

TEST_CASE("store: a journal that a crash of the machine left without its head is no loss after the wait") {
  set_rig_clock(0);
  CrashFiles disk;
  {
    Process server(disk, {"--save", "", "--appendfsync", "always"});
    CHECK(server.ask({"SAVE"}) == "+OK\r\n");
    server.kill();
  }
  disk.put("journal.2", "");
  reboot(disk, 1);
  Process again(disk, {"--save", "", "--appendfsync", "always"});
  REQUIRE(again.failure() == "");
  CHECK(is_granted(again.ask({"LOCK", "b", "bob", "600000"})));
}

TEST_CASE("store: data without meta makes the start wait, with tokens ahead of the clock") {
  for (const bool saved : {false, true}) {
    CAPTURE(saved);
    set_rig_clock(0);
    CrashFiles disk;
    {
      Process server(disk, {"--save", ""});
      CHECK(is_granted(server.ask({"LOCK", "a", "alice", "600000"})));
      if (saved) CHECK(server.ask({"SAVE"}) == "+OK\r\n");
      CHECK(server.stop());
    }
    REQUIRE(disk.remove("meta"));
    Process again(disk, {"--save", ""});
    REQUIRE(again.failure() == "");
    CHECK(again.ask({"EXISTS", "a"}) == ":1\r\n");
    CHECK(is_recovering(again.ask({"LOCK", "b", "bob", "600000"})));
    CHECK(std::stoull(again.fact("token_largest")) >= std::stoull(token_ahead(10)));
    again.kill();
    Process last(disk, {"--save", ""});
    check_wait_ends_after(60, last);
  }
}

TEST_CASE("store: an empty folder, and a dump of Redis alone, need no recovery wait") {
  for (const bool redis : {false, true}) {
    CAPTURE(redis);
    set_rig_clock(0);
    CrashFiles disk;
    if (redis) disk.put("dump.rdb", std::string("REDIS0010\xFF\0\0\0\0\0\0\0\0", 18));
    Process server(disk, {"--save", ""});
    REQUIRE(server.failure() == "");
    CHECK(is_granted(server.ask({"LOCK", "a", "alice", "600000"})));
  }
}

TEST_CASE("store: a refused start on data without meta leaves no meta") {
  set_rig_clock(0);
  CrashFiles disk;
  leave_two_journals(disk);
  REQUIRE(disk.remove("meta"));
  const std::string second = disk.bytes("journal.2");
  cut_frames(disk.bytes("journal.1"), 1);
  for (int start = 0; start < 2; ++start) {
    Process again(disk, {});
    CHECK(again.failure().find("run `holdfast check --repair") != std::string::npos);
  }
  CHECK(disk.bytes("journal.2") == second);
  CHECK(disk.contents().count("meta") == 0);
}

TEST_CASE("store: a damaged meta refuses the start, and the error names the repair") {
  set_rig_clock(0);
  CrashFiles disk;
  Process(disk, {}).stop();
  for (const char* text : {"", "version 3\n", "version 9\n"}) {
    CAPTURE(text);
    disk.put("meta", text);
    Process again(disk, {});
    const std::string advice =
        std::string(text) == "version 9\n" ? "use that version" : "/meta` rebuilds it";
    CHECK(again.failure().find(advice) != std::string::npos);
  }
}

TEST_CASE("store: a snapshot of a server without a journal needs no journal") {
  set_rig_clock(0);
  CrashFiles disk;
  {
    Process server(disk, {"--appendonly", "no"});
    CHECK(is_granted(server.ask({"LOCK", "a", "alice", "600000"})));
    CHECK(server.stop());
  }
  for (const char* journal : {"yes", "no", "yes"}) {
    Process again(disk, {"--appendonly", journal});
    REQUIRE(again.failure() == "");
    CHECK(again.ask({"EXISTS", "a"}) == ":1\r\n");
    CHECK(again.ask({"SET", "b", journal}) == "+OK\r\n");
    CHECK(again.stop());
  }
}

TEST_CASE("store: a journal cut between two frames after a clean stop refuses the start") {
  for (const size_t frames : {size_t{0}, size_t{1}, size_t{3}}) {
    CAPTURE(frames);
    set_rig_clock(0);
    CrashFiles disk;
    {
      Process server(disk, {"--save", ""});
      for (const char* key : {"a", "b", "c", "d"})
        CHECK(is_granted(server.ask({"LOCK", key, "alice", "600000"})));
      CHECK(server.stop());
    }
    if (frames > 0) cut_frames(disk.bytes("journal.1"), frames);
    Process(disk, {"--save", ""});  // a rejected start changes nothing for the next
    Process again(disk, {"--save", ""});
    const std::string missing = std::to_string(frames) + " records are missing";
    CHECK((again.failure() == "") == (frames == 0));
    CHECK((again.failure().find(missing) != std::string::npos) == (frames > 0));
  }
}

TEST_CASE("store: a journal cut between two frames, with another after it, refuses the start") {
  set_rig_clock(0);
  CrashFiles disk;
  leave_two_journals(disk);
  cut_frames(disk.bytes("journal.1"), 1);
  Process again(disk, {});
  CHECK(again.failure().find(
            "journal.2: it begins with record 3, but the journal before it ends with record 1") !=
        std::string::npos);
}

TEST_CASE("store: a crash of the machine may cut a journal between two frames before another") {
  set_rig_clock(0);
  CrashFiles disk;
  leave_two_journals(disk);
  cut_frames(disk.bytes("journal.1"), 1);
  Meta meta = meta_of(disk);
  meta.boot_id = meta.clock_boot_id = "another";
  disk.bytes("meta") = format_meta(meta);
  {
    Process again(disk, {"--recovery-wait", "0"});
    REQUIRE(again.failure() == "");
    CHECK(again.ask({"EXISTS", "a", "b", "c"}) == ":1\r\n");
    CHECK(is_granted(again.ask({"LOCK", "d", "alice", "600000"})));
    again.kill();
  }
  CHECK(disk.bytes("journal.2.damaged").size() > kJournalHeadBytes);
  Process last(disk, {});
  REQUIRE(last.failure() == "");
  CHECK(last.ask({"EXISTS", "a", "d"}) == ":2\r\n");
}

TEST_CASE("store: a folder with only meta left makes the start wait") {
  set_rig_clock(0);
  CrashFiles disk;
  leave_only_meta(disk);
  Process again(disk, {});
  REQUIRE(again.failure() == "");
  CHECK(is_recovering(again.ask({"LOCK", "a", "bob", "600000"})));
}

TEST_CASE("store: a kill just after a start with only meta left, which had no holds, loses nothing") {
  set_rig_clock(0);
  CrashFiles disk;
  { Process server(disk, {"--save", ""}); }
  REQUIRE(disk.remove("journal.1"));
  {
    Process server(disk, {"--save", ""});
    CHECK(is_granted(server.ask({"LOCK", "a", "alice", "600000"})));
  }
  Process again(disk, {"--save", ""});
  CHECK(is_granted(again.ask({"LOCK", "b", "bob", "600000"})));
}

TEST_CASE("store: a kill just after a start with only meta left does not hide the loss") {
  set_rig_clock(0);
  CrashFiles disk;
  leave_only_meta(disk);
  disk.keep_images([] { return uint64_t{0}; });
  {
    Process server(disk, {"--save", ""});
    REQUIRE(server.failure() == "");
  }
  for (auto& image : disk.take_images()) {
    image.files->kill();
    Process again(*image.files, {"--save", ""});
    REQUIRE(again.failure() == "");
    CHECK(is_recovering(again.ask({"LOCK", "a", "bob", "600000"})));
  }
}

TEST_CASE("store: a journal of which a crash left only the name is created again under its number") {
  for (const bool saved : {true, false}) {
    CAPTURE(saved);
    set_rig_clock(0);
    CrashFiles disk;
    {
      Process server(disk, {"--save", ""});
      CHECK(is_granted(server.ask({"LOCK", "a", "alice", "0"})));
      if (!saved) disk.fail_write(2, EIO);
      CHECK(server.ask({"SAVE"}).starts_with("-ERR") == !saved);
      server.kill();
    }
    disk.bytes("journal.2").clear();
    for (const char* key : {"b", "c", "d"}) {
      Process again(disk, {"--save", "", "--recovery-wait", "0"});
      REQUIRE(again.failure() == "");
      CHECK(again.ask({"EXISTS", "a"}) == ":1\r\n");
      CHECK(is_granted(again.ask({"LOCK", key, "alice", "0"})));
      disk.fail_write(2, EIO);  // makes another journal, but no snapshot
      CHECK(again.ask({"SAVE"}).starts_with("-ERR"));
      again.kill();
    }
    Process last(disk, {"--save", ""});
    REQUIRE(last.failure() == "");
    CHECK(last.ask({"EXISTS", "a", "b", "c", "d"}) == ":4\r\n");
  }
}

TEST_CASE(
    "store: damage at the end of a journal with another after it refuses the start, and changes nothing") {
  for (const bool clean : {false, true}) {
    CAPTURE(clean);
    set_rig_clock(0);
    CrashFiles disk;
    leave_two_journals(disk);
    if (clean) {
      Meta meta = meta_of(disk);
      meta.clean = true;
      disk.put("meta", format_meta(meta));
    }
    std::string& first = disk.bytes("journal.1");
    const std::string whole = first;
    first.resize(first.size() - 3);
    const std::string cut = first, second = disk.bytes("journal.2");
    {
      Process again(disk, {"--save", ""});
      CHECK(again.failure().find("journal.1: damaged at byte") != std::string::npos);
      CHECK(again.failure().find("journal.2 follows") != std::string::npos);
    }
    CHECK(disk.bytes("journal.1") == cut);
    CHECK(disk.bytes("journal.2") == second);
    disk.bytes("journal.1") = whole;
    Process last(disk, {"--save", ""});
    CHECK(last.failure() == "");
    CHECK(last.ask({"EXISTS", "a", "b"}) == ":2\r\n");
  }
}

TEST_CASE("store: journals after one that a crash has cut leave no gap in the numbers") {
  set_rig_clock(0);
  CrashFiles disk;
  leave_two_journals(disk);
  std::string& first = disk.bytes("journal.1");
  first.resize(first.size() - 3);
  Meta meta = meta_of(disk);
  meta.boot_id = "another";
  disk.put("meta", format_meta(meta));
  for (const char* key : {"x", "y"}) {
    Process again(disk, {"--save", "", "--recovery-wait", "0"});
    REQUIRE(again.failure() == "");
    CHECK(is_granted(again.ask({"LOCK", key, "alice", "0"})));
    disk.fail_write(2, EIO);
    CHECK(again.ask({"SAVE"}).starts_with("-ERR"));
    again.kill();
  }
  Process last(disk, {});
  REQUIRE(last.failure() == "");
  CHECK(last.ask({"EXISTS", "a", "b", "x", "y"}) == ":3\r\n");
}

TEST_CASE("store: an incomplete record behind a clean stop is cut off, and later journals stay") {
  set_rig_clock(0);
  const Words options{"--save", "", "--recovery-wait", "0"};
  CrashFiles disk;
  {
    Process server(disk, options);
    CHECK(is_granted(server.ask({"LOCK", "a", "alice", "0"})));
    CHECK(server.stop());
  }
  disk.bytes("journal.1").append(3, '\x01');
  for (const char* key : {"x", "y"}) {
    Process again(disk, options);
    REQUIRE(again.failure() == "");
    CHECK(is_granted(again.ask({"LOCK", key, "alice", "0"})));
    again.kill();
  }
  Process last(disk, options);
  REQUIRE(last.failure() == "");
  CHECK(last.ask({"EXISTS", "a", "x", "y"}) == ":3\r\n");
}

TEST_CASE("store: a start leaves no journal without a head behind the one that it continues") {
  const Words options{"--save", ""};
  for (const size_t bytes : {0, 6}) {
    CAPTURE(bytes);
    set_rig_clock(0);
    CrashFiles disk;
    {
      Process server(disk, options);
      CHECK(is_granted(server.ask({"LOCK", "a", "alice", "0"})));
      if (bytes == 0) {
        server.kill();
      } else {
        CHECK(server.stop());
      }
    }
    disk.put("journal.2", disk.bytes("journal.1").substr(0, bytes));
    {
      Process again(disk, options);
      REQUIRE(again.failure() == "");
      CHECK(is_granted(again.ask({"LOCK", "b", "alice", "0"})));
      again.kill();
    }
    CHECK_FALSE(*disk.exists("journal.2"));
    std::string& journal = disk.bytes("journal.1");  // as if it was killed within the write
    if (bytes == 0) {
      journal += "ha";
    } else {
      journal.pop_back();
    }
    Process last(disk, options);
    REQUIRE(last.failure() == "");
    CHECK(last.ask({"EXISTS", "a", "b"}) == (bytes == 0 ? ":2\r\n" : ":1\r\n"));
    CHECK(last.ask({"EXISTS", "a"}) == ":1\r\n");
  }
}

TEST_CASE("store: a crash during the start keeps the name of a journal that has no head") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    set_rig_clock(0);
    CrashFiles disk;
    {
      Process server(disk, {"--save", ""});
      CHECK(server.ask({"SAVE"}) == "+OK\r\n");
      server.kill();
    }
    disk.put("journal.2", disk.bytes("journal.2").substr(0, 6));
    reboot(disk, seed);
    Process(disk, {"--appendfsync", "no"}).kill();
    reboot(disk, seed);
    Process again(disk, {});
    CHECK(again.failure() == "");
  }
}

TEST_CASE("store: a crash after a start loses nothing that the start has read in earlier journals") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    set_rig_clock(0);
    CrashFiles disk;
    leave_two_journals(disk);
    {
      Process server(disk, {"--appendfsync", "always"});
      CHECK(is_granted(server.ask({"LOCK", "d", "alice", "600000"})));
      server.kill();
    }
    reboot(disk, seed);
    Process again(disk, {});
    REQUIRE(again.failure() == "");
    CHECK(again.ask({"EXISTS", "a", "b", "c", "d"}) == ":4\r\n");
  }
}

TEST_CASE("store: a crash after a clean stop without a journal keeps the journal that the start has read") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    set_rig_clock(0);
    CrashFiles disk;
    {
      Process server(disk, {"--save", ""});
      CHECK(is_granted(server.ask({"LOCK", "a", "alice", "600000"})));
      server.kill();
    }
    CHECK(Process(disk, {"--appendonly", "no"}).stop());
    reboot(disk, seed);
    Process again(disk, {});
    REQUIRE(again.failure() == "");
    CHECK(again.ask({"EXISTS", "a"}) == ":1\r\n");
  }
}

TEST_CASE("store: a second crash does not bring back a journal that the start after the first dropped") {
  for (const bool torn : {true, false}) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      CAPTURE(torn);
      CAPTURE(seed);
      set_rig_clock(0);
      CrashFiles disk;
      leave_two_journals(disk);
      std::string& first = disk.bytes("journal.1");
      torn ? first.resize(first.size() - 3) : cut_frames(first, 1);
      CrashFiles cut;  // nothing in it is unsynced
      for (const auto& [name, bytes] : disk.contents()) cut.put(name, bytes);
      reboot(cut, seed);
      {
        Process server(cut, {"--appendfsync", "always", "--recovery-wait", "0"});
        REQUIRE(server.failure() == "");
        CHECK(is_granted(server.ask({"LOCK", "d", "alice", "600000"})));  // the record that "b" had
        server.kill();
      }
      reboot(cut, seed);
      Process again(cut, {});
      REQUIRE(again.failure() == "");
      CHECK(again.ask({"EXISTS", "a", "d"}) == ":2\r\n");
      CHECK(again.ask({"EXISTS", "b", "c"}) == ":0\r\n");
    }
  }
}

}  // namespace holdfast
