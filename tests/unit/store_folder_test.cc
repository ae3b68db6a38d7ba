// A data folder that is replaced while the server runs.
#include <future>
#include <map>
#include <string>

#include "store_rig.h"

namespace holdfast {
namespace {

using Words = Process::Words;

void replace_folder(CrashFiles& disk, const std::map<std::string, std::string>& files = {}) {
  disk.remove_folder();
  disk.restore_folder();
  for (const auto& [name, bytes] : files) disk.put(name, bytes);
}

// The removal of a journal waits until the test opens the gate.
class SlowRemoval : public CrashFiles {
 public:
  void open_gate() { gate_.set_value(); }
  Result<Done> remove(const std::string& name) override {
    if (name.starts_with("journal.")) opened_.wait();
    return CrashFiles::remove(name);
  }

 private:
  std::promise<void> gate_;
  std::shared_future<void> opened_ = gate_.get_future();
};

// Puts files of another server into the folder. Returns their meta.
Meta put_foreign(CrashFiles& disk, const std::string& journal) {
  Meta meta;
  meta.id = "0123456789012345678901234567890123456789";
  disk.put("meta", format_meta(meta));
  disk.put(journal, "theirs");
  return meta;
}

}  // namespace

TEST_CASE("store: a slow removal of old journals does not remove those of another server's folder") {
  set_rig_clock(0);
  SlowRemoval disk;
  Process server(disk, {});
  CHECK(is_granted(server.ask({"LOCK", "k", "alice", "600000"})));
  server.send({"BGSAVE"});
  server.store().every_second();
  server.run_save();
  CHECK(server.running_jobs() == 1);
  replace_folder(disk);
  put_foreign(disk, "journal.1");
  server.store().every_second();
  const size_t rejected = server.send({"LOCK", "x", "bob", "600000"});
  CHECK(server.reply(rejected).find("moved or removed") != std::string::npos);
  disk.open_gate();
  server.idle(3);
  CHECK(server.ask({"LOCK", "x", "bob", "600000"}).find("another server") != std::string::npos);
  CHECK(disk.bytes("journal.1") == "theirs");
}

TEST_CASE("store: a kill before the first snapshot in a new folder leaves a folder that a start accepts") {
  set_rig_clock(0);
  CrashFiles disk;
  {
    Process server(disk, {"--save", ""});
    CHECK(is_granted(server.ask({"LOCK", "k", "alice", "600000", "SHARED"})));
    CHECK(is_granted(server.ask({"LOCK", "k", "bob", "600000", "SHARED"})));
    replace_folder(disk);
    server.store().every_second();  // begins the snapshot, and the journal after it
    server.send({"UNLOCK", "k", "bob"});
    server.kill();
  }
  Process again(disk, {"--save", ""});
  CHECK(again.failure() == "");
  CHECK(is_recovering(again.ask({"LOCK", "k", "carol", "600000"})));
}

TEST_CASE("store: a folder replaced during a snapshot gets the whole state") {
  for (const char* policy : {"always", "everysec", "no"}) {
    CAPTURE(policy);
    set_rig_clock(0);
    CrashFiles disk;
    {
      Process server(disk, {"--appendfsync", policy});
      for (int i = 0; i < 30; ++i)
        server.ask({"SET", "large:" + std::to_string(i), std::string(50'000, 'x')});
      CHECK(is_granted(server.ask({"LOCK", "k", "alice", "600000"})));
      server.send({"BGSAVE"});
      server.store().every_second();
      replace_folder(disk);
      server.idle(12);
      server.finish_save();
      CHECK(is_granted(server.ask({"LOCK", "later", "alice", "600000"})));
      server.kill();
    }
    Process again(disk, {"--appendfsync", policy});
    REQUIRE(again.failure() == "");
    CHECK(again.ask({"GET", "k"}) == "$5\r\nalice\r\n");
    CHECK(again.ask({"GET", "later"}) == "$5\r\nalice\r\n");
    CHECK(again.ask({"STRLEN", "large:29"}) == ":50000\r\n");
  }
}

TEST_CASE("store: a full disk whose folder is replaced by one on another disk recovers") {
  for (const char* policy : {"always", "everysec", "no"}) {
    CAPTURE(policy);
    set_rig_clock(0);
    CrashFiles disk;
    {
      Process server(disk, {"--save", "", "--appendfsync", policy});
      CHECK(is_granted(server.ask({"LOCK", "k", "alice", "600000"})));
      disk.set_capacity(0);
      const size_t held = server.send({"LOCK", "held", "alice", "600000"});
      server.idle(2);
      CHECK(server.ask({"LOCK", "x", "bob", "600000"}).starts_with("-MISCONF"));
      CHECK(server.reply(held) == "held");
      replace_folder(disk);
      disk.set_capacity(std::nullopt);
      server.idle(8);
      server.finish_save();
      server.idle(1);
      CHECK(is_granted(server.reply(held)));
      const std::string granted = server.ask({"LOCK", "x", "bob", "600000"});
      CHECK_MESSAGE(is_granted(granted), granted);
      server.kill();
    }
    Process again(disk, {"--save", "", "--appendfsync", policy});
    REQUIRE(again.failure() == "");
    CHECK(again.ask({"GET", "k"}) == "$5\r\nalice\r\n");
    CHECK(again.ask({"GET", "held"}) == "$5\r\nalice\r\n");
    CHECK(again.ask({"GET", "x"}) == "$3\r\nbob\r\n");
  }
}

TEST_CASE("store: a kill before a replaced folder is complete makes the next start wait") {
  set_rig_clock(0);
  CrashFiles disk;
  {
    Process server(disk, {});
    for (int i = 0; i < 30; ++i)
      server.ask({"SET", "large:" + std::to_string(i), std::string(50'000, 'x')});
    CHECK(is_granted(server.ask({"LOCK", "k", "alice", "600000"})));
    replace_folder(disk);
    server.store().every_second();  // detects the folder, and starts a snapshot
    server.kill();
  }
  Process again(disk, {});
  REQUIRE(again.failure() == "");
  CHECK(is_recovering(again.ask({"LOCK", "k", "bob", "600000"})));
}

TEST_CASE("store: a replaced folder that is unusable makes the stop a failure") {
  set_rig_clock(0);
  CrashFiles disk;
  Process server(disk, {});
  CHECK(is_granted(server.ask({"LOCK", "k", "alice", "600000"})));
  replace_folder(disk);
  disk.set_read_only(true);
  server.idle(3);
  CHECK(server.ask({"LOCK", "x", "bob", "600000"}).starts_with("-MISCONF"));
  CHECK_FALSE(server.stop());
}

TEST_CASE("store: without a journal a stop fails if the folder with the last snapshot was removed") {
  set_rig_clock(0);
  CrashFiles disk;
  Process server(disk, {"--appendonly", "no"});
  CHECK(is_granted(server.ask({"LOCK", "k", "alice", "600000"})));
  CHECK(server.ask({"SAVE"}) == "+OK\r\n");
  disk.remove_folder();
  CHECK_FALSE(server.stop());
}

TEST_CASE("store: a folder replaced by another server's is not changed") {
  set_rig_clock(0);
  CrashFiles disk;
  Process server(disk, {});
  CHECK(is_granted(server.ask({"LOCK", "k", "alice", "600000"})));
  replace_folder(disk);
  const Meta meta = put_foreign(disk, "journal.7");
  server.idle(3);
  CHECK(server.ask({"LOCK", "x", "bob", "600000"}).find("another server") != std::string::npos);
  CHECK(server.ask({"SAVE"}).starts_with("-ERR"));
  server.ask({"BGSAVE"});
  server.idle(3);
  CHECK_FALSE(server.stop());
  CHECK(meta_of(disk) == meta);
  CHECK(disk.bytes("journal.7") == "theirs");
  CHECK(*disk.list() == std::vector<std::string>{"journal.7", "meta"});
}

TEST_CASE("store: a write of meta that failed is not retried in another server's folder") {
  set_rig_clock(0);
  CrashFiles disk;
  Process server(disk, {});
  CHECK(is_granted(server.ask({"LOCK", "k", "alice", "600000"})));
  disk.remove_folder();
  server.ask({"LOCK", "ahead", "bob", "600000", "TOKEN", "1700000600000000"});
  const Meta meta = put_foreign(disk, "journal.7");
  disk.restore_folder();
  server.idle(3);
  CHECK_FALSE(server.stop());
  CHECK(meta_of(disk) == meta);
  CHECK(disk.bytes("journal.7") == "theirs");
}

TEST_CASE("store: a server without a journal does not change another server's folder at its stop") {
  for (const char* save : {"3600 1", ""}) {
    CAPTURE(save);
    set_rig_clock(0);
    CrashFiles disk;
    Process server(disk, {"--appendonly", "no", "--save", save});
    CHECK(is_granted(server.ask({"LOCK", "k", "alice", "600000"})));
    replace_folder(disk);
    disk.put("dump.rdb.gz", "theirs");
    server.idle(3);
    CHECK_FALSE(server.stop());
    CHECK(*disk.list() == std::vector<std::string>{"dump.rdb.gz"});
    CHECK(disk.bytes("dump.rdb.gz") == "theirs");
  }
}

TEST_CASE("store: a removed folder makes the stop a failure, also of a server that saves nothing") {
  set_rig_clock(0);
  CrashFiles disk;
  Process server(disk, {"--appendonly", "no", "--save", ""});
  CHECK(is_granted(server.ask({"LOCK", "k", "alice", "600000"})));
  disk.remove_folder();
  CHECK_FALSE(server.stop());
}

TEST_CASE("store: a folder replaced by an older copy of itself gets the whole state") {
  set_rig_clock(0);
  CrashFiles disk;
  {
    Process server(disk, {});
    CHECK(is_granted(server.ask({"LOCK", "gone", "alice", "600000"})));
    CHECK(server.ask({"SAVE"}) == "+OK\r\n");
    CHECK(server.ask({"SAVE"}) == "+OK\r\n");  // the copy's journal has a higher number than the new one
    const std::map<std::string, std::string> copy = disk.contents();
    CHECK(server.ask({"UNLOCK", "gone", "alice"}) == ":1\r\n");
    CHECK(is_granted(server.ask({"LOCK", "k", "alice", "600000"})));
    replace_folder(disk, copy);
    server.idle(2);
    server.finish_save();
    CHECK(is_granted(server.ask({"LOCK", "x", "alice", "600000"})));
    server.kill();
  }
  Process again(disk, {});
  REQUIRE(again.failure() == "");
  CHECK(again.ask({"EXISTS", "gone", "k", "x"}) == ":2\r\n");
}

TEST_CASE(
    "store: a crash while an older copy in place of the folder is removed leaves one that a start "
    "accepts") {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    set_rig_clock(0);
    CrashFiles disk;
    {
      Process server(disk, {});
      CHECK(is_granted(server.ask({"LOCK", "k", "alice", "600000"})));
      CHECK(server.ask({"SAVE"}) == "+OK\r\n");
      replace_folder(disk, disk.contents());
      server.store().every_second();  // removes the copies, and begins the snapshot
      server.kill();
    }
    disk.crash(seed);
    Process again(disk, {"--appendonly", "no"});
    CHECK(again.failure() == "");
    CHECK(is_recovering(again.ask({"LOCK", "k", "bob", "600000"})));
  }
}

TEST_CASE("store: the stop of a server with a just replaced folder saves the whole state there") {
  for (const char* journal : {"yes", "no"}) {
    CAPTURE(journal);
    set_rig_clock(0);
    CrashFiles disk;
    {
      Process server(disk, {"--appendonly", journal});
      CHECK(is_granted(server.ask({"LOCK", "k", "alice", "600000"})));
      replace_folder(disk);
      CHECK(server.stop());
    }
    CHECK(meta_of(disk).clean);
    Process again(disk, {"--appendonly", journal});
    REQUIRE(again.failure() == "");
    CHECK(again.ask({"GET", "k"}) == "$5\r\nalice\r\n");
  }
}

TEST_CASE("store: a folder replaced during the recovery wait does not end the wait") {
  for (const char* journal : {"yes", "no"}) {
    for (const bool copied : {false, true}) {
      for (const char* end : {"kill", "crash", "stop"}) {
        CAPTURE(journal);
        CAPTURE(copied);
        CAPTURE(end);
        const Words options{"--appendonly", journal, "--recovery-wait", "30000"};
        set_rig_clock(0);
        CrashFiles disk;
        {
          Process server(disk, options);
          CHECK(is_granted(server.ask({"LOCK", "k", "alice", "600000"})));
          server.kill();
        }
        reboot(disk, 1);
        {
          Process server(disk, options);
          copied ? replace_folder(disk, disk.contents()) : replace_folder(disk);
          server.idle(9);
          server.finish_save();
          server.idle(1);
          CHECK(is_recovering(server.ask({"LOCK", "free", "bob", "600000"})));
          if (end == std::string("stop")) {
            CHECK(server.stop());
          } else {
            server.kill();
          }
        }
        if (end == std::string("crash")) reboot(disk, 1);
        Process last(disk, options);
        check_wait_ends_after(20, last);
      }
    }
  }
}

}  // namespace holdfast
