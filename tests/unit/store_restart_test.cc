// The promises of the store about the loss of power, the recovery wait and waiters, each on a disk in
// memory that loses unsynced data.
#include <string>

#include "store_rig.h"

namespace holdfast {
namespace {

using Words = Process::Words;

constexpr uint64_t kSeeds = 8;  // each decides another fate of unsynced data

// The token in the reply of a grant.
uint64_t token_in(const std::string& reply) {
  REQUIRE(is_granted(reply));
  return std::stoull(reply.substr(reply.rfind(':') + 1));
}

// Crashes the machine, and checks that the next start finds all these keys.
void check_kept_in_crash(CrashFiles& disk, uint64_t seed, const Words& keys) {
  reboot(disk, seed);
  Process again(disk, {});
  REQUIRE(again.failure() == "");
  Words exists = {"EXISTS"};
  exists.insert(exists.end(), keys.begin(), keys.end());
  CHECK(again.ask(exists) == ":" + std::to_string(keys.size()) + "\r\n");
}

}  // namespace

TEST_CASE("store: with appendfsync always no reply leaves before its record is synced") {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    CAPTURE(seed);
    set_rig_clock(0);
    CrashFiles disk;
    {
      Process server(disk, {"--save", "", "--appendfsync", "always"});
      const size_t set = server.send({"SET", "k", "v"});
      CHECK(server.reply(set) == "held");
      server.settle();
      CHECK(server.reply(set) == "+OK\r\n");
      server.kill();
    }
    reboot(disk, seed);
    Process again(disk, {});
    CHECK(again.ask({"GET", "k"}) == "$1\r\nv\r\n");
  }
}

TEST_CASE("store: a start without a journal after a kill with one needs no recovery wait") {
  set_rig_clock(0);
  CrashFiles disk;
  {
    Process server(disk, {"--save", ""});
    CHECK(is_granted(server.ask({"LOCK", "a", "alice", "600000"})));
    server.kill();
  }
  Process again(disk, {"--appendonly", "no"});
  CHECK(again.ask({"EXISTS", "a"}) == ":1\r\n");
  CHECK(is_granted(again.ask({"LOCK", "b", "bob", "600000"})));
}

TEST_CASE("store: a start without a journal loses nothing before it serves requests") {
  set_rig_clock(0);
  CrashFiles disk;
  {
    Process server(disk, {"--save", ""});
    CHECK(is_granted(server.ask({"LOCK", "a", "alice", "600000"})));
    server.kill();
  }
  const std::string journal = disk.bytes("journal.1");
  disk.bytes("journal.1")[0] ^= 1;
  CHECK(Process(disk, {"--appendonly", "no"}).failure() != "");
  disk.bytes("journal.1") = journal;
  {
    Process server(disk, {"--appendonly", "no"});
    CHECK(server.ask({"EXISTS", "a"}) == ":1\r\n");
    CHECK(is_granted(server.ask({"LOCK", "b", "bob", "600000"})));
    server.kill();
  }
  Process again(disk, {});
  CHECK(is_recovering(again.ask({"LOCK", "b", "carol", "600000"})));
}

TEST_CASE("store: a start writes the journal again that the last process could not sync") {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    CAPTURE(seed);
    set_rig_clock(0);
    CrashFiles disk;
    const Words always = {"--save", "", "--appendfsync", "always"};
    {
      Process server(disk, always);
      CHECK(is_granted(server.ask({"LOCK", "a", "alice", "600000"})));
      disk.fail_sync(1, EIO);
      CHECK(server.ask({"LOCK", "b", "alice", "600000"}) == "held");
      server.kill();
    }
    {
      Process server(disk, always);
      CHECK(server.ask({"EXISTS", "a", "b"}) == ":2\r\n");
      CHECK(is_granted(server.ask({"LOCK", "c", "alice", "600000"})));
      server.kill();
    }
    check_kept_in_crash(disk, seed, {"a", "b", "c"});
  }
}

TEST_CASE(
    "store: a start that cannot write the journal again grants nothing until a snapshot replaces it") {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    CAPTURE(seed);
    set_rig_clock(0);
    CrashFiles disk;
    const Words always = {"--save", "", "--appendfsync", "always"};
    {
      Process server(disk, always);
      CHECK(server.ask({"SET", "v", std::string(10'000, 'x')}) == "+OK\r\n");
      disk.fail_sync(1, EIO);
      CHECK(server.ask({"LOCK", "b", "alice", "600000"}) == "held");
      server.kill();
    }
    disk.set_capacity(disk.used_bytes() + 5000);
    {
      Process server(disk, always);
      REQUIRE(server.failure() == "");
      CHECK(server.ask({"LOCK", "c", "alice", "600000"}).starts_with("-MISCONF"));
      disk.set_capacity(std::nullopt);
      server.idle(10);
      CHECK(is_granted(server.ask({"LOCK", "c", "alice", "600000"})));
      server.kill();
    }
    check_kept_in_crash(disk, seed, {"v", "b", "c"});
  }
}

TEST_CASE("store: a stop after a failed sync saves a snapshot, as a later sync reports success") {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    CAPTURE(seed);
    set_rig_clock(0);
    CrashFiles disk;
    {
      Process server(disk, {"--save", ""});
      CHECK(is_granted(server.ask({"LOCK", "a", "alice", "600000"})));
      disk.fail_sync(1, EIO);
      server.store().sync_if_due();
      server.settle();
      CHECK(server.stop());
    }
    check_kept_in_crash(disk, seed, {"a"});
  }
}

TEST_CASE("store: a stop waits for the sync of earlier journals that has begun, and sees its failure") {
  for (const bool fails : {false, true}) {
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      CAPTURE(seed);
      CAPTURE(fails);
      set_rig_clock(0);
      CrashFiles disk;
      {
        Process server(disk, {"--save", ""});
        CHECK(is_granted(server.ask({"LOCK", "a", "alice", "600000"})));
        if (fails) disk.fail_sync(1, EIO);
        server.store().sync_if_due();  // its job has not begun, or has not reported yet
        CHECK(server.stop());
      }
      check_kept_in_crash(disk, seed, {"a"});
    }
  }
}

TEST_CASE("store: after a power loss everysec has all changes but those of the last interval") {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    CAPTURE(seed);
    set_rig_clock(0);
    CrashFiles disk;
    {
      Process server(disk, {"--save", "", "--appendfsync", "everysec"});
      CHECK(server.ask({"SET", "early", "v"}) == "+OK\r\n");
      server.idle(1);
      CHECK(server.ask({"SET", "late", "v"}) == "+OK\r\n");
      server.kill();
    }
    reboot(disk, seed);
    Process again(disk, {});
    CHECK(again.ask({"GET", "early"}) == "$1\r\nv\r\n");
  }
}

TEST_CASE("store: a script that holds the loop does not delay the sync of everysec") {
  const Words script{"EVAL", "for i = 1, 1e5 do end", "0"};
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    CAPTURE(seed);
    set_rig_clock(0);
    CrashFiles disk;
    {
      Process server(disk, {"--save", "", "--appendfsync", "everysec"});
      server.store().sync_if_due();
      server.settle();
      CHECK(server.ask({"SET", "early", "v"}) == "+OK\r\n");
      set_rig_clock(999);
      server.send(script);
      CHECK(server.running_jobs() == 0);
      set_rig_clock(1000);
      server.send(script);
      CHECK(server.running_jobs() == 1);
      server.finish_jobs();
      server.kill();
    }
    reboot(disk, seed);
    Process again(disk, {});
    CHECK(again.ask({"GET", "early"}) == "$1\r\nv\r\n");
  }
}

TEST_CASE("store: a crash of the machine after a clean stop loses nothing") {
  for (const char* policy : {"always", "everysec", "no"}) {
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      CAPTURE(policy);
      CAPTURE(seed);
      set_rig_clock(0);
      CrashFiles disk;
      {
        Process server(disk, {"--save", "", "--appendfsync", policy});
        CHECK(is_granted(server.ask({"LOCK", "k", "alice", "600000"})));
        CHECK(server.stop());
      }
      reboot(disk, seed);
      Process again(disk, {});
      REQUIRE(again.failure() == "");
      CHECK(again.ask({"GET", "k"}) == "$5\r\nalice\r\n");
      CHECK(is_granted(again.ask({"LOCK", "free", "bob", "600000"})));
    }
  }
}

TEST_CASE("store: after a power loss tokens continue above all that replies had") {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    CAPTURE(seed);
    set_rig_clock(0);
    CrashFiles disk;
    uint64_t before = 0;
    for (int life = 0; life < 3; ++life) {
      CAPTURE(life);
      Process server(disk, {"--save", "", "--recovery-wait", "0"});
      const uint64_t token = token_in(server.ask({"LOCK", "k", "alice", "1"}));
      CHECK(token > before);
      before = token;
      server.kill();
      reboot(disk, seed);
    }
  }
}

TEST_CASE("store: where meta was removed, tokens continue above those of the restored holds") {
  set_rig_clock(0);
  CrashFiles disk;
  const std::string ahead = std::to_string(rig_now().wall_us + 1'800'000'000);
  {
    Process server(disk, {"--save", ""});
    CHECK(token_in(server.ask({"LOCK", "a", "alice", "600000", "TOKEN", ahead})) == std::stoull(ahead));
    CHECK(token_in(server.ask({"LOCK", "s", "alice", "600000", "SHARED", "TOKEN", ahead})) ==
          std::stoull(ahead));
    server.kill();
  }
  REQUIRE(disk.remove("meta"));
  Process again(disk, {"--recovery-wait", "0"});
  REQUIRE(again.failure() == "");
  for (const char* key : {"a", "s"}) {
    CAPTURE(key);
    CHECK(again.ask({"UNLOCK", key, "alice"}) == ":1\r\n");
    CHECK(token_in(again.ask({"LOCK", key, "bob", "600000"})) > std::stoull(ahead));
  }
}

TEST_CASE("store: a grant above the token reserve gets its reply when a higher reserve is on disk") {
  set_rig_clock(0);
  CrashFiles disk;
  Process server(disk, {"--save", "", "--recovery-wait", "0"});
  const uint64_t reserve = meta_of(disk).token_reserve;
  const size_t below = server.send({"LOCK", "a", "alice", "1", "TOKEN", std::to_string(reserve)});
  CHECK(is_granted(server.reply(below)));
  server.settle();
  const uint64_t next = meta_of(disk).token_reserve;
  const size_t above = server.send({"LOCK", "b", "alice", "1", "TOKEN", std::to_string(next + 1)});
  CHECK(server.reply(above) == "held");
  server.settle();
  CHECK(token_in(server.reply(above)) == next + 1);
  CHECK(meta_of(disk).token_reserve > next);
}

TEST_CASE("store: a stop or a kill during the recovery wait does not end it, with a journal") {
  const Words options{"--save", "", "--recovery-wait", "30000"};
  for (const bool killed : {false, true}) {
    CAPTURE(killed);
    set_rig_clock(0);
    CrashFiles disk;
    {
      Process server(disk, options);
      CHECK(is_granted(server.ask({"LOCK", "k", "alice", "600000"})));
      server.kill();
    }
    reboot(disk, 1);
    for (const int seconds : {10, 15}) {  // 25 s of 30
      Process server(disk, options);
      server.idle(seconds);
      CHECK(is_recovering(server.ask({"LOCK", "free", "bob", "600000"})));
      if (killed) {
        server.kill();
      } else {
        server.stop();
      }
    }
    Process last(disk, options);
    check_wait_ends_after(5, last);
  }
}

TEST_CASE("store: after a reboot the wall clock says how long the recovery wait is") {
  set_rig_clock(0);
  CrashFiles disk;
  {
    Process server(disk, {"--save", ""});
    CHECK(is_granted(server.ask({"LOCK", "k", "alice", "60000"})));
    server.kill();
  }
  reboot(disk, 1);
  rig_now().mono = TimeMs{5000};  // the other clock begins anew
  rig_now().wall_us += 10'000'000;
  Process again(disk, {"--recovery-wait", "900000"});
  const int64_t left_ms = std::stoll(again.fact("recovering_ms"));
  CHECK(left_ms >= 50'000);
  CHECK(left_ms <= 110'000);  // the lead of meta is one minute
}

TEST_CASE("store: the expiry horizon covers each holder of a shared lock") {
  set_rig_clock(0);
  CrashFiles disk;
  {
    Process server(disk, {"--save", ""});
    CHECK(is_granted(server.ask({"LOCK", "k", "alice", "5000", "SHARED"})));
    CHECK(is_granted(server.ask({"LOCK", "k", "bob", "600000", "SHARED"})));
    server.kill();
  }
  reboot(disk, 1);
  Process again(disk, {"--recovery-wait", "900000"});
  CHECK(std::stoll(again.fact("recovering_ms")) >= 600'000);
}

TEST_CASE("store: waiters are not granted while the disk fails, and are as soon as it works") {
  set_rig_clock(0);
  CrashFiles disk;
  Process server(disk, {"--save", ""});
  CHECK(is_granted(server.ask({"LOCK", "k", "alice", "600000"})));
  server.ask_in_session({"LOCK", "k", "bob", "600000", "WAIT", "0"});
  disk.set_capacity(0);
  const size_t lost = server.send({"SET", "x", "y"});
  server.settle();
  CHECK(server.reply(lost) == "held");
  CHECK(server.ask({"UNLOCK", "k", "alice"}) == ":1\r\n");
  server.idle(2);
  CHECK(server.ask({"GET", "k"}) == "$-1\r\n");
  disk.set_capacity(std::nullopt);
  server.idle(2);
  CHECK(server.ask({"GET", "k"}) == "$3\r\nbob\r\n");
}

}  // namespace holdfast
