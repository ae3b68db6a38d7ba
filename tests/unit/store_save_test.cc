// The options that make snapshots, and the journals and folders that reject a start or a lock.
#include <future>
#include <optional>
#include <string>
#include <thread>

#include "core/codec/journal_frame.h"
#include "store_rig.h"

namespace holdfast {
namespace {

using Words = Process::Words;

// Whether the server has made a snapshot.
bool has_saved(CrashFiles& disk, Process& server) {
  server.finish_save();
  return *disk.exists("dump.rdb.gz");
}

void set_keys(Process& server, int from, int to) {
  for (int i = from; i < to; ++i) CHECK(server.ask({"SET", "k:" + std::to_string(i), "v"}) == "+OK\r\n");
}

// A sync of the folder in a job takes until the test ends it, and fails then.
class SlowFolderSync : public CrashFiles {
 public:
  void end() { gate_.set_value(); }
  Result<Done> sync_folder() override {
    if (!waits || std::this_thread::get_id() == loop_) return CrashFiles::sync_folder();
    ended_.wait();
    return Failure{"the machine has crashed"};
  }
  bool waits = false;

 private:
  const std::thread::id loop_ = std::this_thread::get_id();
  std::promise<void> gate_;
  std::shared_future<void> ended_ = gate_.get_future();
};

// A process acquires the lock k; a second later the machine crashes.
void crash_with_lock(CrashFiles& disk) {
  {
    Process server(disk, {"--save", ""});
    CHECK(is_granted(server.ask({"LOCK", "k", "alice", "600000"})));
    server.idle(1);
    server.kill();
  }
  reboot(disk, 1);
}

}  // namespace

TEST_CASE("store: save makes a snapshot after its time, if there were as many changes") {
  set_rig_clock(0);
  CrashFiles disk;
  Process server(disk, {"--save", "3 2"});
  set_keys(server, 0, 1);
  server.idle(4);
  CHECK_FALSE(has_saved(disk, server));
  set_keys(server, 1, 2);
  server.idle(1);
  CHECK(has_saved(disk, server));
  REQUIRE(disk.remove("dump.rdb.gz"));
  set_keys(server, 2, 4);
  server.idle(2);
  CHECK_FALSE(has_saved(disk, server));
  server.idle(1);
  CHECK(has_saved(disk, server));
}

TEST_CASE("store: write-threshold makes a snapshot after so many changes") {
  set_rig_clock(0);
  CrashFiles disk;
  Process server(disk, {"--save", "", "--write-threshold", "3"});
  set_keys(server, 0, 2);
  server.idle(1);
  CHECK_FALSE(has_saved(disk, server));
  set_keys(server, 2, 3);
  server.idle(1);
  CHECK(has_saved(disk, server));
}

TEST_CASE("store: autosave makes a snapshot after so many milliseconds, if there was a change") {
  set_rig_clock(0);
  CrashFiles disk;
  Process server(disk, {"--save", "", "--autosave", "3000"});
  server.idle(4);
  CHECK_FALSE(has_saved(disk, server));
  set_keys(server, 0, 1);
  server.idle(1);
  CHECK(has_saved(disk, server));
  REQUIRE(disk.remove("dump.rdb.gz"));
  set_keys(server, 1, 2);
  server.idle(2);
  CHECK_FALSE(has_saved(disk, server));
  server.idle(1);
  CHECK(has_saved(disk, server));
}

TEST_CASE("store: journal-max-size makes a snapshot when the journal is larger, and a new journal begins") {
  set_rig_clock(0);
  CrashFiles disk;
  size_t of_two = 0;
  {
    Process server(disk, {"--save", ""});
    set_keys(server, 0, 2);
    of_two = disk.bytes("journal.1").size();
    server.kill();
  }
  for (const size_t below : {size_t{0}, size_t{1}}) {
    CAPTURE(below);
    CrashFiles other;
    Process server(other, {"--save", "", "--journal-max-size", std::to_string(of_two - below)});
    set_keys(server, 0, 2);
    server.idle(1);
    CHECK(has_saved(other, server) == (below == 1));
    CHECK(*other.exists("journal.2") == (below == 1));
  }
}

TEST_CASE("store: without a journal SHUTDOWN is an error if the snapshot fails, unless it is forced") {
  set_rig_clock(0);
  CrashFiles disk;
  Process server(disk, {"--appendonly", "no"});
  CHECK(is_granted(server.ask({"LOCK", "k", "alice", "600000"})));
  disk.set_capacity(0);
  CHECK(server.store().prepare_stop({}).starts_with("ERR"));
  CHECK(server.store().prepare_stop({.save = true}).starts_with("ERR"));
  CHECK(server.store().prepare_stop({.force = true}) == "");
  disk.set_capacity(std::nullopt);
  CHECK(server.store().prepare_stop({}) == "");
  CHECK(server.stop());
}

TEST_CASE("store: a journal of a newer version refuses the start, and the folder stays as it is") {
  set_rig_clock(0);
  CrashFiles disk;
  {
    Process server(disk, {"--save", ""});
    set_keys(server, 0, 1);
    server.kill();
  }
  const std::string before = "HOLDFAST JOURNAL 3\na head and records of a newer version";
  disk.put("journal.1", before);
  const std::string meta = disk.bytes("meta");
  Process refused(disk, {});
  CHECK(refused.failure().find("newer version") != std::string::npos);
  CHECK(disk.bytes("journal.1") == before);
  CHECK(disk.bytes("meta") == meta);
}

TEST_CASE("store: a journal with damage before good records refuses the start, and stays as it is") {
  set_rig_clock(0);
  CrashFiles disk;
  {
    Process server(disk, {"--save", ""});
    set_keys(server, 0, 9);
    server.kill();
  }
  const std::string good = disk.bytes("journal.1");
  for (const size_t at : {size_t{1}, kJournalHeadBytes + 1}) {
    CAPTURE(at);
    std::string& journal = disk.bytes("journal.1");
    journal = good;
    journal[at] = static_cast<char>(~journal[at]);
    const std::string before = journal;
    Process refused(disk, {});
    CHECK(refused.failure().find("damaged at byte") != std::string::npos);
    CHECK(disk.bytes("journal.1") == before);
  }
}

TEST_CASE("store: the recovery wait rejects LOCK, but not RENEW, UNLOCK and GET") {
  set_rig_clock(0);
  CrashFiles disk;
  crash_with_lock(disk);
  Process again(disk, {"--save", "", "--recovery-wait", "60000"});
  CHECK(is_recovering(again.ask({"LOCK", "free", "bob", "600000"})));
  CHECK(again.ask({"GET", "k"}) == "$5\r\nalice\r\n");
  CHECK(again.ask({"RENEW", "k", "alice", "600000"}) == ":1\r\n");
  CHECK(again.ask({"UNLOCK", "k", "alice"}) == ":1\r\n");
}

// A name in another database, or a new name, may be that of a lost hold.
TEST_CASE("store: the recovery wait rejects commands that give a hold another name") {
  set_rig_clock(0);
  CrashFiles disk;
  crash_with_lock(disk);
  Process again(disk, {"--save", "", "--recovery-wait", "60000"});
  CHECK(is_recovering(again.ask({"RENAME", "k", "free"})));
  CHECK(is_recovering(again.ask({"RENAMENX", "k", "free"})));
  CHECK(is_recovering(again.ask({"COPY", "k", "free"})));
  CHECK(is_recovering(again.ask({"SWAPDB", "0", "1"})));
  CHECK(again.ask({"GET", "k"}) == "$5\r\nalice\r\n");
  again.idle(60);
  CHECK(again.ask({"RENAME", "k", "free"}) == "+OK\r\n");
  CHECK(again.ask({"SWAPDB", "0", "1"}) == "+OK\r\n");
}

TEST_CASE("store: without a journal the start loads the newer of two snapshots that a crash has left") {
  set_rig_clock(0);
  CrashFiles disk;
  std::string older;
  for (const char* compress : {"no", "yes"}) {
    Process server(disk, {"--appendonly", "no", "--compress", compress});
    CHECK(server.ask({"SET", "compress", compress}) == "+OK\r\n");
    CHECK(server.ask({"SAVE"}) == "+OK\r\n");
    CHECK(server.stop());
    if (older.empty()) older = disk.bytes("dump.rdb");
  }
  REQUIRE_FALSE(*disk.exists("dump.rdb"));
  disk.put("dump.rdb", older);
  for (const char* appendonly : {"no", "yes"}) {
    CAPTURE(appendonly);
    Process last(disk, {"--appendonly", appendonly});
    REQUIRE(last.failure() == "");
    CHECK(last.ask({"GET", "compress"}) == "$3\r\nyes\r\n");
    last.kill();
  }
}

TEST_CASE("store: a snapshot is not written to a file of which a sync has failed") {
  set_rig_clock(0);
  CrashFiles disk;
  {
    auto left = disk.create("dump.rdb.gz.tmp", "");
    REQUIRE(left);
    disk.fail_sync(1, EIO);
    CHECK((*left)->sync() == EIO);
  }
  Process server(disk, {});
  CHECK(server.ask({"SET", "k", "alice"}) == "+OK\r\n");
  CHECK(server.ask({"SAVE"}) == "+OK\r\n");
  server.kill();
  reboot(disk, 1);
  Process again(disk, {});
  REQUIRE(again.failure() == "");
  CHECK(again.ask({"GET", "k"}) == "$5\r\nalice\r\n");
}

TEST_CASE("store: a removed folder rejects locks until it is back, and until a snapshot is in it") {
  set_rig_clock(0);
  CrashFiles disk;
  Process server(disk, {});
  for (int i = 0; i < 30; ++i) server.ask({"SET", "large:" + std::to_string(i), std::string(50'000, 'x')});
  disk.remove_folder();
  server.idle(2);
  CHECK(server.ask({"LOCK", "x", "bob", "600000"}).find("moved or removed") != std::string::npos);
  disk.restore_folder();
  server.store().every_second();  // detects the folder, and starts a snapshot
  CHECK(server.ask({"LOCK", "x", "bob", "600000"}).find("a snapshot of all data") != std::string::npos);
  server.finish_save();
  server.idle(1);
  CHECK(is_granted(server.ask({"LOCK", "x", "bob", "600000"})));
  server.kill();
}

TEST_CASE(
    "store: a crash during the first sync of a journal does not lose its name and keep the next one's") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    set_rig_clock(0);
    SlowFolderSync disk;
    {
      Process server(disk, {"--appendonly", "no"});
      CHECK(server.ask({"SET", "k", "v"}) == "+OK\r\n");
      CHECK(server.stop());
    }
    {
      Process server(disk, {});
      disk.waits = true;
      server.store().sync_if_due();
      CHECK(server.running_jobs() > 0);
      server.send({"BGSAVE"});
      server.store().every_second();  // begins the next journal
      disk.end();
      server.kill();
    }
    disk.waits = false;
    reboot(disk, seed);
    Process again(disk, {});
    CHECK(again.failure() == "");
    CHECK(again.ask({"GET", "k"}) == "$1\r\nv\r\n");
  }
}

}  // namespace holdfast
