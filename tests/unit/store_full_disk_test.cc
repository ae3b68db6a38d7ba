// Starts on a disk that is full, or becomes full during the start.
#include <cerrno>
#include <optional>
#include <string>

#include "store_rig.h"

namespace holdfast {
namespace {

using Words = Process::Words;

const Words kLock{"LOCK", "free", "bob", "600000"};

bool is_rejected(const std::string& reply) { return reply.starts_with("-MISCONF"); }

// Leaves a folder in which alice holds "a" and "b".
void leave_holds(CrashFiles& disk, const Words& options, bool stopped) {
  set_rig_clock(0);
  Process server(disk, options);
  for (const char* key : {"a", "b"}) CHECK(is_granted(server.ask({"LOCK", key, "alice", "600000"})));
  if (stopped) {
    CHECK(server.stop());
  } else {
    CHECK(server.ask({"SAVE"}) == "+OK\r\n");
    server.kill();
  }
}

}  // namespace

TEST_CASE("store: a start on a full disk serves its data, and grants locks when there is space") {
  for (const char* journal : {"yes", "no"}) {
    for (const bool stopped : {false, true}) {
      CAPTURE(journal);
      CAPTURE(stopped);
      const Words options{"--appendonly", journal, "--recovery-wait", "0"};
      CrashFiles disk;
      leave_holds(disk, options, stopped);
      {
        disk.set_capacity(0);
        Process server(disk, options);
        REQUIRE(server.failure() == "");
        CHECK(server.ask({"GET", "a"}) == "$5\r\nalice\r\n");
        CHECK(is_rejected(server.ask(kLock)));
        CHECK(server.ask({"UNLOCK", "a", "alice"}) == ":1\r\n");
        server.idle(7);
        CHECK(is_rejected(server.ask(kLock)));
        disk.set_capacity(std::nullopt);
        server.idle(7);
        server.finish_save();
        CHECK(is_granted(server.ask(kLock)));
        CHECK(server.ask({"SAVE"}) == "+OK\r\n");
        server.kill();
      }
      Process last(disk, options);
      REQUIRE(last.failure() == "");
      CHECK(last.ask({"EXISTS", "a", "b", "free"}) == ":2\r\n");
    }
  }
}

TEST_CASE("store: each write of a start may fail") {
  for (const char* journal : {"yes", "no"}) {
    for (const bool stopped : {false, true}) {
      for (uint64_t n = 1; n <= 5; ++n) {
        CAPTURE(journal);
        CAPTURE(stopped);
        CAPTURE(n);
        const Words options{"--appendonly", journal, "--recovery-wait", "0"};
        CrashFiles disk;
        leave_holds(disk, options, stopped);
        {
          disk.fail_write(n, ENOSPC);
          Process server(disk, options);
          disk.fail_write(0, 0);  // the start may have fewer writes
          REQUIRE(server.failure() == "");
          CHECK(server.ask({"UNLOCK", "a", "alice"}) == ":1\r\n");
          server.idle(7);
          server.finish_save();
          CHECK(is_granted(server.ask(kLock)));
          CHECK(server.stop());
        }
        CHECK(meta_of(disk).clean);
        Process last(disk, options);
        REQUIRE(last.failure() == "");
        CHECK(last.ask({"EXISTS", "a", "b", "free"}) == ":2\r\n");
      }
    }
  }
}

TEST_CASE("store: an incomplete record is cut off also if the journal cannot be written again") {
  for (uint64_t n = 1; n <= 5; ++n) {
    CAPTURE(n);
    CrashFiles disk;
    {
      Process server(disk, {"--save", ""});
      for (const char* key : {"a", "b"}) CHECK(is_granted(server.ask({"LOCK", key, "alice", "600000"})));
      server.kill();
    }
    std::string& journal = disk.bytes("journal.1");
    journal.resize(journal.size() - 3);
    const Words options{"--save", "", "--recovery-wait", "0"};
    {
      disk.fail_write(n, ENOSPC);
      Process server(disk, options);
      disk.fail_write(0, 0);  // the start may have fewer writes
      REQUIRE(server.failure() == "");
      server.kill();
    }
    Process last(disk, options);
    REQUIRE(last.failure() == "");
    CHECK(last.ask({"EXISTS", "a", "b"}) == ":1\r\n");
  }
}

TEST_CASE("store: a start that cannot write meta leaves the folder as it is") {
  const Words options{"--save", ""};
  CrashFiles disk;
  leave_holds(disk, options, true);
  const auto before = disk.contents();
  disk.set_capacity(0);
  {
    Process server(disk, options);
    REQUIRE(server.failure() == "");
    disk.set_capacity(disk.used_bytes() + 1000);  // for a record of the journal
    disk.fail_write(1, ENOSPC);
    CHECK(server.ask({"UNLOCK", "a", "alice"}) == ":1\r\n");
    CHECK(disk.contents() == before);
    server.kill();
  }
  disk.set_capacity(std::nullopt);
  Process last(disk, options);
  CHECK(last.ask({"EXISTS", "a", "b"}) == ":2\r\n");
  CHECK(is_granted(last.ask(kLock)));
}

TEST_CASE("store: a start without meta on a full disk is refused") {
  set_rig_clock(0);
  CrashFiles disk;
  disk.set_capacity(0);
  Process server(disk, {});
  CHECK(
      server.failure() ==
      "cannot write folder/meta.tmp: No space left on device; a start in a folder without meta must write "
      "it: free space, or choose another --dir");
}

TEST_CASE(
    "store: a new snapshot that fails after a start without a journal leaves no record without those "
    "before") {
  const Words options{"--save", ""};
  CrashFiles disk;
  leave_holds(disk, options, true);
  {
    disk.set_capacity(0);
    Process server(disk, options);
    REQUIRE(server.failure() == "");
    CHECK(server.ask({"UNLOCK", "a", "alice"}) == ":1\r\n");
    disk.set_capacity(std::nullopt);
    disk.fail_write(3, EIO);  // after meta and the head of the new journal
    CHECK(server.ask({"SAVE"}).starts_with("-ERR"));
    CHECK(server.ask({"UNLOCK", "b", "alice"}) == ":1\r\n");
    server.kill();
  }
  Process last(disk, options);
  REQUIRE(last.failure() == "");
  CHECK(last.ask({"EXISTS", "a", "b"}) == ":2\r\n");
}

}  // namespace holdfast
