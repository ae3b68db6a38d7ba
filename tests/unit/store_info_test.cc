// INFO persistence shows each failure of the disk, as long as the server rejects locks with -MISCONF.
#include <cerrno>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "store_rig.h"

namespace holdfast {
namespace {

using Words = Process::Words;

const Words kLock{"LOCK", "probe", "alice", "600000"};

bool is_rejected(Process& server) { return server.ask(kLock).starts_with("-MISCONF"); }

// The fields that monitoring reads: the changes, the snapshot, and the snapshot that replaces the journal.
std::string shown(const Process& server) {
  return server.fact("aof_last_write_status") + " " + server.fact("rdb_last_bgsave_status") + " " +
         server.fact("aof_last_bgrewrite_status");
}

struct Cause {
  std::string name;
  std::function<void(CrashFiles&, Process&)> begin;
  std::function<void(CrashFiles&)> end;
  std::string shown;  // while it lasts
  bool needs_journal = false;
};

void acquire_far_ahead(CrashFiles&, Process& server) { static_cast<void>(send_ahead(server, 5)); }

const std::vector<Cause> kCauses{
    {"a removed folder", [](CrashFiles& disk, Process&) { disk.remove_folder(); },
     [](CrashFiles& disk) { disk.restore_folder(); }, "err err err"},
    {"a folder of another server",
     [](CrashFiles& disk, Process&) {
       disk.remove_folder();
       disk.restore_folder();
       disk.put("journal.7", "theirs");
     },
     [](CrashFiles& disk) {
       disk.remove_folder();
       disk.restore_folder();
     },
     "err err err"},
    {"a full disk",
     [](CrashFiles& disk, Process& server) {
       disk.set_capacity(0);
       server.send({"SET", "k", "v"});
     },
     [](CrashFiles& disk) { disk.set_capacity(std::nullopt); }, "err ok ok", true},
    {"a read-only disk",
     [](CrashFiles& disk, Process& server) {
       disk.set_read_only(true);
       server.send({"SET", "k", "v"});
     },
     [](CrashFiles& disk) { disk.set_read_only(false); }, "err ok ok", true},
    {"a token reserve that is not written",
     [](CrashFiles& disk, Process& server) {
       disk.set_capacity(disk.used_bytes() + 200);  // for the record in the journal
       acquire_far_ahead(disk, server);
     },
     [](CrashFiles& disk) { disk.set_capacity(std::nullopt); }, "err ok ok"},
};

}  // namespace

TEST_CASE("store: INFO shows an error as long as locks are rejected because of the disk") {
  for (const char* journal : {"yes", "no"}) {
    for (const Cause& cause : kCauses) {
      if (cause.needs_journal && journal == std::string("no")) continue;
      CAPTURE(cause.name);
      CAPTURE(journal);
      set_rig_clock(0);
      CrashFiles disk;
      Process server(disk, {"--save", "", "--appendonly", journal});
      CHECK(is_granted(server.ask(kLock)));
      CHECK(shown(server) == "ok ok ok");
      cause.begin(disk, server);
      server.idle(2);
      CHECK(is_rejected(server));
      CHECK(shown(server) == cause.shown);
      cause.end(disk);
      server.idle(7);
      server.finish_save();
      server.idle(1);
      CHECK_FALSE(is_rejected(server));
      CHECK(shown(server) == "ok ok ok");
      server.kill();
    }
  }
}

TEST_CASE("store: INFO shows a failed sync until a snapshot has replaced the journal") {
  set_rig_clock(0);
  CrashFiles disk;
  Process server(disk, {"--save", ""});
  CHECK(server.ask({"SET", "k", "v"}) == "+OK\r\n");
  disk.fail_sync(1, EIO);
  server.store().sync_if_due();
  server.settle();
  CHECK(is_rejected(server));
  CHECK(shown(server) == "err ok ok");
  server.idle(1);
  server.finish_save();
  server.idle(1);
  CHECK_FALSE(is_rejected(server));
  CHECK(shown(server) == "ok ok ok");
  server.kill();
}

TEST_CASE("store: INFO shows a failed snapshot, which rejects no lock") {
  for (const char* journal : {"yes", "no"}) {
    CAPTURE(journal);
    set_rig_clock(0);
    CrashFiles disk;
    Process server(disk, {"--save", "", "--appendonly", journal});
    CHECK(server.ask({"SET", "k", "v"}) == "+OK\r\n");
    disk.fail_write(journal == std::string("yes") ? 2 : 1, EIO);  // after the head of the new journal
    CHECK(server.ask({"SAVE"}).starts_with("-ERR"));
    CHECK_FALSE(is_rejected(server));
    CHECK(shown(server) == "ok err err");
    CHECK(server.ask({"SAVE"}) == "+OK\r\n");
    CHECK(shown(server) == "ok ok ok");
    server.kill();
  }
}

TEST_CASE("store: a folder replaced during a snapshot rejects locks until it has the whole state") {
  for (const char* journal : {"yes", "no"}) {
    CAPTURE(journal);
    set_rig_clock(0);
    CrashFiles disk;
    Process server(disk, {"--save", "", "--appendonly", journal});
    for (const char* key : {"a", "b", "c"}) server.ask({"SET", key, std::string(500'000, 'x')});
    server.send({"BGSAVE"});
    server.store().every_second();
    disk.remove_folder();
    disk.restore_folder();
    server.store().every_second();
    CHECK(server.ask(kLock).find("a snapshot of all data") != std::string::npos);
    CHECK(shown(server) == "err err err");
    server.idle(12);
    server.finish_save();
    CHECK_FALSE(is_rejected(server));
    CHECK(shown(server) == "ok ok ok");
    server.kill();
  }
}

}  // namespace holdfast
