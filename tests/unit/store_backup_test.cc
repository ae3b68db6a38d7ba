// Backups of the store, and the start on a restored folder.
#include <string>

#include "core/codec/backup.h"
#include "store_rig.h"

namespace holdfast {
namespace {

constexpr int64_t kHourUs = 3'600'000'000;
constexpr const char* kNoBackup = "ERR no backup: send BACKUP START first, on the same connection";

// A client that stays connected, and reads a backup.
class Reader {
 public:
  explicit Reader(Process& server)
      : server_(server),
        hooks_(server.store().storage_hooks()),
        id_(server.engine().open("127.0.0.1:1", "127.0.0.1:2", rig_now())) {}

  std::string start() { return hooks_.start_backup(id_); }
  // Returns the next bytes. Jobs may run until then; a second may not pass.
  BackupBytes read() {
    server_.settle();
    return hooks_.read_backup(id_);
  }
  // Returns the whole backup.
  std::string read_all() {
    std::string all;
    while (true) {
      const BackupBytes next = read();
      REQUIRE_MESSAGE(next.error.empty(), next.error);
      if (next.ended) return all;
      REQUIRE_FALSE(next.bytes.empty());
      all += next.bytes;
    }
  }
  void disconnect() {
    Effects effects;
    server_.engine().drop(id_, rig_now(), effects);
  }

 private:
  Process& server_;
  StorageHooks hooks_;
  ConnId id_;
};

struct Content {
  BackupHead head;
  std::string snapshot;
};

Content content_of(const std::string& backup) {
  BackupReader reader;
  Content content;
  REQUIRE(reader.feed(backup, content.snapshot));
  REQUIRE(reader.finish());
  content.head = *reader.head();
  return content;
}

// Makes the folder that a restore makes: an unclean meta whose tokens are `passed_us` old.
void restore(CrashFiles& disk, uint64_t reserve, int64_t passed_us, std::vector<AheadToken> ahead = {}) {
  Meta meta;
  meta.id = std::string(kFolderIdDigits, 'b');
  meta.horizon_ms = meta.horizon_boot_ms = kNever.count;
  meta.token_reserve = meta.token_max = reserve;
  meta.tokens_ahead = std::move(ahead);
  meta.tokens_at_us = rig_now().wall_us - passed_us;
  REQUIRE(disk.replace("meta", format_meta(meta)));
}

uint64_t token_of(Process& server, const std::string& key) {
  const std::string reply = server.ask({"LOCK", key, "alice", "60000"});
  REQUIRE_MESSAGE(is_granted(reply), reply);
  return std::stoull(reply.substr(reply.rfind(':') + 1));
}

}  // namespace

TEST_CASE("store: a backup has the snapshot of a moment after its start, and the state of meta") {
  set_rig_clock(0);
  CrashFiles disk;
  Process server(disk, {"--save", "", "--max-token-lead", "7000"});
  CHECK(is_granted(server.ask({"LOCK", "k", "alice", "600000"})));
  Reader reader(server);
  CHECK(reader.start().empty());
  CHECK(reader.read().bytes.empty());
  server.finish_save();
  const Content content = content_of(reader.read_all());
  CHECK(content.snapshot == disk.bytes("dump.rdb.gz"));
  CHECK(content.head.meta == meta_of(disk));
  CHECK(content.head.taken_us == rig_now().wall_us);
  CHECK(content.head.token_lead_us == 7'000'000);
  CHECK(content.head.snapshot_bytes == content.snapshot.size());
  CHECK(reader.read().error == kNoBackup);
}

TEST_CASE("store: a backup that starts during a snapshot gets the next one") {
  set_rig_clock(0);
  CrashFiles disk;
  Process server(disk, {"--save", "", "--compress", "no"});
  CHECK(server.ask({"BGSAVE"}).starts_with("+"));
  server.store().every_second();  // begins it; it cannot end before the loop runs
  Reader reader(server);
  CHECK(reader.start().empty());
  CHECK(server.ask({"SET", "marker", "x"}) == "+OK\r\n");
  server.finish_save();
  CHECK(content_of(reader.read_all()).snapshot.find("marker") != std::string::npos);
}

TEST_CASE("store: a backup reads its snapshot to the end, though others replace it") {
  set_rig_clock(0);
  CrashFiles disk;
  Process server(disk, {"--save", "", "--compress", "no"});
  CHECK(server.ask({"SET", "big", std::string(3 * Backups::kPieceBytes, 'x')}) == "+OK\r\n");
  Reader reader(server);
  CHECK(reader.start().empty());
  server.finish_save();
  std::string all = reader.read().bytes;
  CHECK(server.ask({"SET", "big", "small"}) == "+OK\r\n");
  CHECK(server.ask({"SAVE"}) == "+OK\r\n");
  all += reader.read_all();
  CHECK(content_of(all).snapshot.size() > 3 * Backups::kPieceBytes);
}

TEST_CASE("store: a failed snapshot fails the backup that waits for it, and no other") {
  set_rig_clock(0);
  CrashFiles disk;
  Process server(disk, {"--save", ""});
  Reader done(server);
  CHECK(done.start().empty());
  server.finish_save();
  Reader waits(server);
  CHECK(waits.start().empty());
  disk.fail_folder_sync(1, EIO);
  server.finish_save();
  CHECK(waits.read().error.starts_with("ERR the backup failed: "));
  CHECK(waits.read().error == kNoBackup);
  CHECK_FALSE(done.read_all().empty());
}

TEST_CASE("store: a backup ends with its connection, and after a minute without a request") {
  set_rig_clock(0);
  CrashFiles disk;
  Process server(disk, {"--save", ""});
  Reader gone(server), idle(server);
  CHECK(gone.start().empty());
  CHECK(idle.start().empty());
  server.finish_save();
  gone.disconnect();
  server.idle(59);
  CHECK(gone.read().error == kNoBackup);
  CHECK_FALSE(idle.read().bytes.empty());
  server.idle(60);
  CHECK(idle.read().error == kNoBackup);
}

TEST_CASE("store: at most four backups are read at the same time") {
  set_rig_clock(0);
  CrashFiles disk;
  Process server(disk, {"--save", ""});
  Reader a(server), b(server), c(server), d(server), e(server);
  for (Reader* reader : {&a, &b, &c, &d}) CHECK(reader->start().empty());
  CHECK(e.start() == "ERR 4 other backups are being read; try again later");
  CHECK(a.start().empty());  // in place of its own
  server.finish_save();
  static_cast<void>(a.read_all());
  CHECK(e.start().empty());
}

TEST_CASE("store: a stop during a backup succeeds") {
  set_rig_clock(0);
  CrashFiles disk;
  Process server(disk, {"--save", ""});
  Reader waits(server), reads(server);
  CHECK(reads.start().empty());
  server.finish_save();
  CHECK(waits.start().empty());
  CHECK(server.stop());
}

TEST_CASE("store: tokens of a restored folder are above the reserve and the time since the backup") {
  set_rig_clock(0);
  CrashFiles disk;
  const auto reserve = static_cast<uint64_t>(rig_now().wall_us);
  restore(disk, reserve, 5 * kHourUs, {{"far", reserve + 9 * kHourUs}});
  Process server(disk, {"--recovery-wait", "0"});
  const uint64_t token = token_of(server, "k");
  CHECK(token == reserve + 5 * kHourUs + 1);
  CHECK(token_of(server, "far") > reserve + 14 * kHourUs);
  CHECK(meta_of(disk).tokens_at_us == 0);
  CHECK(meta_of(disk).token_reserve > token);
}

TEST_CASE("store: the time since the backup counts once") {
  set_rig_clock(0);
  CrashFiles disk;
  const auto reserve = static_cast<uint64_t>(rig_now().wall_us);
  restore(disk, reserve, 5 * kHourUs);
  Process(disk, {"--recovery-wait", "0"}).stop();
  Process server(disk, {});
  CHECK(token_of(server, "k") == reserve + 5 * kHourUs + 1);
}

TEST_CASE("store: a restored folder grants nothing for the recovery wait") {
  set_rig_clock(0);
  CrashFiles disk;
  restore(disk, 1, 0);
  Process server(disk, {"--recovery-wait", "5000"});
  check_wait_ends_after(5, server);
}

TEST_CASE("store: a folder with the rest of a restore refuses the start, and stays as it is") {
  set_rig_clock(0);
  CrashFiles disk;
  restore(disk, 1, 0);
  REQUIRE(disk.replace(kRestoreName, "part"));
  const std::string before = disk.bytes("meta");
  CHECK(Process(disk, {}).failure().find("a restore did not end") != std::string::npos);
  CHECK(disk.bytes("meta") == before);
}

}  // namespace holdfast
