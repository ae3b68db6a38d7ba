// The promises of the store between requests, at stops and when disks fail. An idle server replies. The
// server sends no reply before its change is persistent. After a stop it never grants a hold again that
// may be valid.
#include <string>

#include "store_rig.h"

namespace holdfast {
namespace {

using Words = Process::Words;

const Words kSilent{"--save", ""};  // without automatic snapshots

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Writes 1.5 MB in keys, so that a snapshot takes several loop iterations.
void fill(Process& server) {
  for (int i = 0; i < 30; ++i)
    REQUIRE(server.ask({"SET", "large:" + std::to_string(i), std::string(50'000, 'x')}) == "+OK\r\n");
}

}  // namespace

TEST_CASE("store: a server that was idle for minutes replies, with each journal setting") {
  for (const Words& options : {Words{}, Words{"--appendfsync", "no"}, Words{"--appendonly", "no"},
                               Words{"--appendfsync", "always"}}) {
    for (const Words& grant : {Words{"LOCK", "job", "me", "3600000"},
                               Words{"SET", "job", "me", "EX", "3600"}, Words{"LOCK", "job", "me", "0"}}) {
      CAPTURE(options);
      CAPTURE(grant);
      set_rig_clock(0);
      CrashFiles disk;
      Process server(disk, options);
      CHECK_FALSE(server.ask(grant).starts_with("-"));
      CHECK(server.ask({"DEL", "job"}) == ":1\r\n");
      for (const int seconds : {75, 60, 200}) {
        server.idle(seconds);
        CHECK(server.ask({"PING"}) == "+PONG\r\n");
      }
      CHECK(is_granted(server.ask({"LOCK", "job", "you", "1000"})));
    }
  }
}

TEST_CASE("store: an idle server replies after its wall clock was set") {
  set_rig_clock(0);
  CrashFiles disk;
  Process server(disk, {});
  CHECK(is_granted(server.ask({"LOCK", "job", "me", "3600000"})));
  for (const int64_t hours : {5, -9, 100}) {
    rig_now().wall_us += hours * 3'600'000'000;
    CHECK(server.ask({"PING"}) == "+PONG\r\n");
  }
}

TEST_CASE("store: a grant during a write of meta gets its reply as soon as meta covers it") {
  for (const Words& options : {Words{"--appendfsync", "no"}, Words{"--appendonly", "no"}}) {
    CAPTURE(options);
    set_rig_clock(0);
    CrashFiles disk;
    Process server(disk, options);
    const int64_t minute_us = 60'000'000;
    const int64_t now_us = rig_now().wall_us;
    const auto token = [&](int64_t minutes) { return std::to_string(now_us + minutes * minute_us); };
    const size_t first = server.send({"LOCK", "x", "a", "600000", "TOKEN", token(10)});
    const size_t second = server.send({"LOCK", "y", "b", "600000", "TOKEN", token(20)});
    CHECK(server.reply(first) == "held");
    server.settle();
    CHECK(is_granted(server.reply(first)));
    CHECK(is_granted(server.reply(second)));
    const size_t brief = server.send({"LOCK", "p", "a", "5"});
    const size_t lasting = server.send({"LOCK", "q", "b", "6000000"});
    CHECK(server.reply(lasting) == "held");
    server.settle();
    CHECK(is_granted(server.reply(brief)));
    CHECK(is_granted(server.reply(lasting)));
  }
}

TEST_CASE(
    "store: a reply leaves after the write of meta that covers it, although later grants need another") {
  for (const Words& options : {Words{}, Words{"--appendfsync", "no"}, Words{"--appendonly", "no"}}) {
    CAPTURE(options);
    set_rig_clock(0);
    CrashFiles disk;
    Process server(disk, options);
    size_t covered = send_ahead(server, 10);
    for (const int64_t minutes : {20, 30, 40, 50}) {  // a request during each write
      CAPTURE(minutes);
      const size_t later = send_ahead(server, minutes);
      CHECK(server.reply(covered) == "held");
      server.finish_job();
      CHECK(is_granted(server.reply(covered)));
      CHECK(server.reply(later) == "held");
      server.run_iteration();  // begins the next write
      covered = later;
    }
    server.settle();
    CHECK(is_granted(server.reply(covered)));
  }
}

TEST_CASE("store: growing ttls do not make each grant wait for the disk") {
  set_rig_clock(0);
  CrashFiles disk;
  Process server(disk, {"--appendfsync", "no"});
  int held = 0;
  for (int64_t minutes = 1; minutes <= 1000; ++minutes) {
    const size_t n =
        server.send({"LOCK", "k" + std::to_string(minutes), "a", std::to_string(minutes * 60'000)});
    held += server.reply(n) == "held" ? 1 : 0;
    server.settle();
  }
  CHECK(held < 20);
}

TEST_CASE("store: SESSION holds that end at a start let other clients acquire at every later start") {
  set_rig_clock(0);
  CrashFiles disk;
  {
    Process server(disk, {});
    CHECK(is_granted(server.ask({"LOCK", "pool", "a", "0", "LIMIT", "2"})));
    CHECK(is_granted(server.ask_in_session({"LOCK", "pool", "b", "0", "LIMIT", "2", "SESSION"})));
    CHECK(is_granted(server.ask_in_session({"LOCK", "alone", "b", "0", "SESSION"})));
    server.kill();
  }
  for (const char* owner : {"c", "d"}) {
    Process server(disk, {});
    REQUIRE(server.failure() == "");
    CHECK(is_granted(server.ask({"LOCK", "pool", owner, "0", "LIMIT", "2"})));
    CHECK(is_granted(server.ask({"LOCK", "alone", owner, "0"})));
    CHECK(server.ask({"UNLOCK", "alone", owner}) == ":1\r\n");
    server.kill();
    if (*owner == 'd') break;
    Process again(disk, {});
    REQUIRE(again.failure() == "");
    CHECK(again.ask({"UNLOCK", "pool", owner}) == ":1\r\n");
    again.stop();
  }
  Process last(disk, {});
  CHECK(last.failure() == "");
}

TEST_CASE("store: writes that a full disk rejected get no reply, whatever is synced in the meantime") {
  for (const char* policy : {"always", "everysec", "no"}) {
    CAPTURE(policy);
    set_rig_clock(0);
    CrashFiles disk;
    {
      Process server(disk, with(kSilent, {"--appendfsync", policy}));
      CHECK(is_granted(server.ask({"LOCK", "before", "alice", "600000"})));
      disk.set_capacity(0);
      const size_t grant = server.send({"LOCK", "k", "alice", "600000"});
      server.settle();
      server.idle(3);
      CHECK(server.reply(grant) == "held");
      CHECK(server.ask({"LOCK", "other", "alice", "600000"}).starts_with("-MISCONF"));
      server.kill();
    }
    disk.set_capacity(std::nullopt);
    Process again(disk, with(kSilent, {"--appendfsync", policy}));
    CHECK(again.ask({"GET", "before"}) == "$5\r\nalice\r\n");
    CHECK(is_granted(again.ask({"LOCK", "k", "bob", "600000"})));
  }
}

TEST_CASE("store: writes that a full disk rejected at first get their reply once they succeed") {
  for (const char* policy : {"always", "everysec", "no"}) {
    CAPTURE(policy);
    set_rig_clock(0);
    CrashFiles disk;
    Process server(disk, with(kSilent, {"--appendfsync", policy}));
    disk.set_capacity(0);
    const size_t grant = server.send({"LOCK", "k", "alice", "600000"});
    server.idle(2);
    CHECK(server.reply(grant) == "held");
    disk.set_capacity(std::nullopt);
    server.idle(2);
    CHECK(is_granted(server.reply(grant)));
    server.kill();
    Process again(disk, with(kSilent, {"--appendfsync", policy}));
    CHECK(again.ask({"GET", "k"}) == "$5\r\nalice\r\n");
  }
}

TEST_CASE("store: a sync of the journal does not send a reply that waits for meta") {
  for (const char* policy : {"always", "everysec"}) {
    CAPTURE(policy);
    set_rig_clock(0);
    CrashFiles disk;
    Process server(disk, with(kSilent, {"--appendfsync", policy}));
    const auto far = std::to_string(rig_now().wall_us + 3'600'000'000);
    disk.fail_write(2, EIO);  // the first write is the journal's
    const size_t grant = server.send({"LOCK", "k", "alice", "600000", "TOKEN", far});
    server.settle();
    server.store().sync_if_due();
    server.settle();
    CHECK(server.reply(grant) == "held");
    server.idle(2);
    CHECK(is_granted(server.reply(grant)));
  }
}

TEST_CASE("store: a stop during the recovery wait does not end the wait") {
  const Words options{"--appendonly", "no", "--save", "", "--recovery-wait", "30000"};
  for (const bool killed : {false, true}) {
    CAPTURE(killed);
    set_rig_clock(0);
    CrashFiles disk;
    {
      Process server(disk, options);
      CHECK(is_granted(server.ask({"LOCK", "k", "alice", "600000"})));
      server.kill();
    }
    for (const int seconds : {10, 15}) {  // 25 s of 30
      Process server(disk, options);
      CHECK(is_recovering(server.ask({"LOCK", "k", "bob", "600000"})));
      server.idle(seconds);
      CHECK(is_recovering(server.ask({"LOCK", "k", "bob", "600000"})));
      if (killed) {
        server.kill();
      } else {
        server.stop();
      }
    }
    Process last(disk, options);
    CHECK(is_recovering(last.ask({"LOCK", "k", "bob", "600000"})));
    last.idle(4);
    CHECK(is_recovering(last.ask({"LOCK", "k", "bob", "600000"})));
    last.idle(2);
    CHECK(is_granted(last.ask({"LOCK", "k", "bob", "600000"})));
  }
}

TEST_CASE("store: without a journal a stop during a snapshot saves the whole state") {
  const Words options{"--appendonly", "no", "--save", "3600 1", "--recovery-wait", "30000"};
  set_rig_clock(0);
  CrashFiles disk;
  {
    Process server(disk, options);
    fill(server);
    CHECK(is_granted(server.ask({"LOCK", "before", "alice", "600000"})));
    CHECK(server.send({"BGSAVE"}) > 0);
    server.store().every_second();
    CHECK(server.fact("rdb_bgsave_in_progress") == "1");
    server.send({"LOCK", "after", "alice", "600000"});
    CHECK(server.stop());
  }
  Process again(disk, options);
  CHECK(again.ask({"GET", "before"}) == "$5\r\nalice\r\n");
  CHECK(again.ask({"GET", "after"}) == "$5\r\nalice\r\n");
  CHECK(again.ask({"STRLEN", "large:29"}) == ":50000\r\n");
  CHECK(is_granted(again.ask({"LOCK", "free", "bob", "600000"})));
}

TEST_CASE("store: a stop that failed to save says so, and the next start waits for the lost holds") {
  const Words options{"--appendonly", "no", "--save", "3600 1", "--recovery-wait", "30000"};
  for (const bool saving : {false, true}) {
    CAPTURE(saving);
    set_rig_clock(0);
    CrashFiles disk;
    {
      Process server(disk, options);
      if (saving) fill(server);
      CHECK(is_granted(server.ask({"LOCK", "k", "alice", "600000"})));
      if (saving) {
        server.send({"BGSAVE"});
        server.store().every_second();
      }
      disk.set_capacity(0);
      CHECK_FALSE(server.stop());
    }
    disk.set_capacity(std::nullopt);
    CHECK_FALSE(meta_of(disk).clean);
    Process again(disk, options);
    CHECK(is_recovering(again.ask({"LOCK", "k", "bob", "600000"})));
  }
}

TEST_CASE("store: a stop ends a script that has not written, and keeps the whole state") {
  for (const char* journal : {"yes", "no"}) {
    CAPTURE(journal);
    const Words options{"--appendonly",           journal, "--recovery-wait",  "30000",
                        "--busy-reply-threshold", "10",    "--script-timeout", "0"};
    set_rig_clock(0);
    CrashFiles disk;
    {
      Process server(disk, options);
      CHECK(is_granted(server.ask({"LOCK", "k", "alice", "600000"})));
      server.send_together(
          {{"LOCK", "same", "alice", "600000"}, {"EVAL", "redis.call('GET', 'k') while true do end", "0"}});
      CHECK(server.stop());
    }
    CHECK(meta_of(disk).clean);
    Process again(disk, options);
    CHECK(again.ask({"GET", "k"}) == "$5\r\nalice\r\n");
    CHECK(again.ask({"GET", "same"}) == "$5\r\nalice\r\n");
    CHECK(is_granted(again.ask({"LOCK", "free", "bob", "600000"})));
  }
}

TEST_CASE("store: without a journal a stop saves no part of a script's changes") {
  const Words options{"--appendonly",           "no", "--recovery-wait",  "30000",
                      "--busy-reply-threshold", "10", "--script-timeout", "0"};
  set_rig_clock(0);
  CrashFiles disk;
  {
    Process server(disk, options);
    CHECK(server.ask({"SAVE"}) == "+OK\r\n");
    CHECK(is_granted(server.ask({"LOCK", "k", "alice", "600000"})));
    server.send_together({{"EVAL", "redis.call('SET', 'half', 1) while true do end", "0"}});
    CHECK_FALSE(server.stop());
  }
  CHECK_FALSE(meta_of(disk).clean);
  Process again(disk, options);
  CHECK(again.ask({"EXISTS", "half"}) == ":0\r\n");
  CHECK(is_recovering(again.ask({"LOCK", "k", "bob", "600000"})));
}

TEST_CASE("store: a stop without saving is no clean stop where it loses holds") {
  for (const bool nosave : {false, true}) {
    CAPTURE(nosave);
    const Words options{"--appendonly", "no", "--save", nosave ? "3600 1" : "", "--recovery-wait", "30000"};
    set_rig_clock(0);
    CrashFiles disk;
    {
      Process server(disk, options);
      CHECK(is_granted(server.ask({"LOCK", "k", "alice", "600000"})));
      if (nosave) CHECK(server.store().prepare_stop({.never_save = true}) == "");
      CHECK(server.stop());
    }
    CHECK_FALSE(meta_of(disk).clean);
    {
      Process again(disk, options);
      CHECK(is_recovering(again.ask({"LOCK", "k", "bob", "600000"})));
      again.idle(31);
      CHECK(is_granted(again.ask({"LOCK", "k", "bob", "600000"})));
      CHECK(again.ask({"SAVE"}) == "+OK\r\n");
      CHECK(again.stop());  // no change since
    }
    CHECK(meta_of(disk).clean);
    Process last(disk, options);
    CHECK(last.ask({"GET", "k"}) == "$3\r\nbob\r\n");
    CHECK(is_granted(last.ask({"LOCK", "other", "bob", "600000"})));
  }
}

TEST_CASE("store: the expiry horizon covers holds without a deadline, hashes, and long idle times") {
  const Words options{"--save", "", "--recovery-wait", "60000"};
  for (const Words& grant :
       {Words{"LOCK", "k", "a", "0"}, Words{"LOCK", "k", "a", "600000"}, Words{"SET", "k", "a"},
        Words{"HSET", "k", "a", "1"}, Words{"LOCK", "k", "a", "0", "SHARED"}}) {
    for (const int silence : {0, 130, 500}) {
      CAPTURE(grant);
      CAPTURE(silence);
      set_rig_clock(0);
      CrashFiles disk;
      {
        Process server(disk, options);
        server.idle(2);
        CHECK_FALSE(server.ask(grant).starts_with("-"));
        server.idle(silence);
        server.kill();
      }
      reboot(disk, 1);
      Process again(disk, options);
      CHECK(is_recovering(again.ask({"LOCK", "free", "bob", "600000"})));
      check_wait_ends_after(60, again);
    }
  }
}

TEST_CASE("store: after a machine that failed when all holds had ended, the server grants at once") {
  set_rig_clock(0);
  CrashFiles disk;
  {
    Process server(disk, {});
    CHECK(is_granted(server.ask({"LOCK", "k", "a", "5000"})));
    server.idle(120);
    server.kill();
  }
  reboot(disk, 1);
  Process again(disk, {});
  CHECK(is_granted(again.ask({"LOCK", "k", "bob", "600000"})));
}

}  // namespace holdfast
