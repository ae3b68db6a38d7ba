// When replies leave that wait for the disk: each reply waits for the writes that its own promise needs,
// and for no later ones.
#include <algorithm>
#include <future>
#include <string>
#include <vector>

#include "store_rig.h"

namespace holdfast {
namespace {

using Words = Process::Words;

// Each write of meta waits, before it replaces the file, until the test opens the gate.
class SlowMeta : public CrashFiles {
 public:
  void open_gate() { gate_.set_value(); }
  Result<Done> rename(const std::string& from, const std::string& to) override {
    if (to == "meta" && waits) opened_.wait();
    return CrashFiles::rename(from, to);
  }
  bool waits = false;  // the test sets it while no write of meta runs

 private:
  std::promise<void> gate_;
  std::shared_future<void> opened_ = gate_.get_future();
};

// Acquires a new lock with a token so far ahead of the clock that meta must name the key.
size_t send_far(Process& server, int minutes) { return send_ahead(server, 60 + minutes); }

const std::vector<Words> kPolicies{{"--save", "", "--appendfsync", "always"},
                                   {"--save", "", "--appendfsync", "everysec"},
                                   {"--save", "", "--appendfsync", "no"},
                                   {"--save", "", "--appendonly", "no"}};

// Other requests run beside a script soon, and no script is ended.
Words with_long_scripts(Words options) {
  options.insert(options.end(), {"--busy-reply-threshold", "10", "--script-timeout", "0"});
  return options;
}

}  // namespace

TEST_CASE("store: replies leave while new grants need one write of meta after the other") {
  for (const Words& options : kPolicies) {
    CAPTURE(options);
    set_rig_clock(0);
    CrashFiles disk;
    Process server(disk, options);
    size_t grant = send_far(server, 1);
    size_t ping = server.send({"PING"});
    for (int minutes = 2; minutes < 20; ++minutes) {
      CAPTURE(minutes);
      const size_t later_grant = send_far(server, minutes);
      const size_t later_ping = server.send({"PING"});
      CHECK(server.reply(grant) == "held");
      CHECK(server.reply(ping) == "held");
      server.finish_jobs();
      CHECK(is_granted(server.reply(grant)));
      CHECK(server.reply(ping) == "+PONG\r\n");
      CHECK(server.reply(later_grant) == "held");
      CHECK(server.reply(later_ping) == "held");
      server.run_iteration();  // begins the next writes
      grant = later_grant;
      ping = later_ping;
    }
    server.settle();
    CHECK(is_granted(server.reply(grant)));
  }
}

TEST_CASE("store: with appendfsync always a reply waits for the sync and for the write of meta") {
  set_rig_clock(0);
  SlowMeta disk;
  Process server(disk, kPolicies[0]);
  disk.waits = true;
  const size_t grant = send_far(server, 1);
  server.finish_job();  // the sync
  server.run_iteration();
  CHECK(server.reply(grant) == "held");
  disk.open_gate();
  server.finish_job();
  CHECK(is_granted(server.reply(grant)));
}

TEST_CASE("store: with appendfsync always a reply whose sync failed waits for a snapshot") {
  set_rig_clock(0);
  CrashFiles disk;
  Process server(disk, kPolicies[0]);
  disk.fail_sync(1, EIO);
  const size_t grant = server.send({"LOCK", "k", "a", "600000"});
  server.settle();
  server.run_iteration();
  CHECK(server.reply(grant) == "held");
  server.idle(1);  // begins a snapshot
  server.finish_save();
  server.idle(1);
  CHECK(is_granted(server.reply(grant)));
}

TEST_CASE("store: replies that wait for a slow write of meta leave after it, in any number of syncs") {
  constexpr int kRounds = 3 * static_cast<int>(HeldReplies::kMaxGroups);
  for (const int far : {0, 1, 10, kRounds - 1}) {  // this request needs a second write of meta
    CAPTURE(far);
    set_rig_clock(0);
    SlowMeta disk;
    Process server(disk, kPolicies[0]);
    disk.waits = true;
    const size_t first = send_far(server, 1);
    std::vector<size_t> sent;
    for (int i = 0; i < kRounds; ++i) {
      sent.push_back(i == far ? send_far(server, 2) : server.send({"SET", "k" + std::to_string(i), "v"}));
      server.finish_job();     // a sync
      server.run_iteration();  // begins the next one
    }
    while (server.running_jobs() > 1) server.finish_job();
    disk.open_gate();
    server.finish_job();
    disk.waits = false;
    CHECK(is_granted(server.reply(first)));
    // The number of groups between that of `first` and the last one, which waits for the second write.
    const int between = static_cast<int>(HeldReplies::kMaxGroups) - 2;
    for (int i = 0; i < std::min(far, between); ++i)
      CHECK(server.reply(sent[static_cast<size_t>(i)]) != "held");
    for (int i = far; i < kRounds; ++i) CHECK(server.reply(sent[static_cast<size_t>(i)]) == "held");
    server.run_iteration();
    server.settle();
    for (const size_t number : sent) CHECK(server.reply(number) != "held");
  }
}

TEST_CASE(
    "store: a reply does not wait for the horizon of a hold that ended, while other grants need meta") {
  set_rig_clock(0);
  CrashFiles disk;
  Process server(disk, kPolicies[1]);
  send_far(server, 1);  // a write of meta begins
  const size_t grant = server.send({"LOCK", "long", "a", "0"});
  server.send({"UNLOCK", "long", "a"});
  for (int minutes = 2; minutes < 5; ++minutes) {
    send_far(server, minutes);
    server.finish_jobs();
    server.run_iteration();
  }
  CHECK(is_granted(server.reply(grant)));
}

TEST_CASE("store: a reply does not wait for the horizon of a hold whose deadline has passed") {
  set_rig_clock(0);
  CrashFiles disk;
  Process server(disk, kPolicies[3]);
  send_far(server, 1);  // a write of meta begins, which does not cover the hold
  const size_t grant = server.send({"LOCK", "long", "a", "36000000"});
  CHECK(server.reply(grant) == "held");
  set_rig_clock(36'000'001);
  const auto lock_for_1_ms = [&](const char* key, int64_t minutes_ahead) {
    return server.send({"LOCK", key, "a", "1", "TOKEN", token_ahead(minutes_ahead)});
  };
  lock_for_1_ms("b", 700);
  set_rig_clock(36'000'010);
  server.finish_job();
  server.run_iteration();  // the next write begins, which covers the token of b, and no hold
  const size_t last = lock_for_1_ms("c", 800);
  set_rig_clock(36'000'020);
  server.finish_job();
  server.run_iteration();
  CHECK(is_granted(server.reply(grant)));
  CHECK(server.reply(last) == "held");
}

TEST_CASE("store: a grant in the iteration in which a long script begins survives the script and a kill") {
  for (const Words& options : {kPolicies[0], kPolicies[1], kPolicies[2]}) {
    CAPTURE(options);
    set_rig_clock(0);
    CrashFiles disk;
    {
      Process server(disk, with_long_scripts(options));
      const auto sent = server.send_together(
          {{"LOCK", "k", "a", "600000"}, {"EVAL", "redis.call('SET', 'half', 1) while true do end", "0"}});
      server.settle();
      CHECK(is_granted(server.reply(sent[0])));
      server.kill();
    }
    Process server(disk, options);
    CHECK(server.ask({"LOCK", "k", "b", "600000"}) == "*-1\r\n");
    CHECK(server.ask({"EXISTS", "half"}) == ":0\r\n");
  }
}

TEST_CASE("store: a reply whose record waits for a long script leaves after the script") {
  for (const Words& options : {kPolicies[0], kPolicies[1], kPolicies[2]}) {
    CAPTURE(options);
    set_rig_clock(0);
    CrashFiles disk;
    Process server(disk, with_long_scripts(options));
    // The records of large values are written at the end of the iteration.
    const auto sent = server.send_together({{"HSET", "large", "field", std::string(100'000, 'v')},
                                            {"HSET", "large", "other", "v"},
                                            {"EVAL", "for i = 1, 1e7 do end", "0"}});
    server.settle();
    CHECK(server.reply(sent[1]) == "held");
    for (int turns = 0; server.reply(sent[1]) == "held" && turns < 10'000; ++turns) {
      server.run_iteration();
      server.settle();
    }
    CHECK(server.reply(sent[1]) == ":1\r\n");
  }
}

TEST_CASE("store: a grant before a SAVE in the same iteration gets no reply if its record is not written") {
  for (const Words& options : {kPolicies[0], kPolicies[1], kPolicies[2]}) {
    CAPTURE(options);
    set_rig_clock(0);
    CrashFiles disk;
    {
      Process server(disk, options);
      CHECK(server.ask({"SET", "gone", "v"}) == "+OK\r\n");
      disk.set_read_only(true);
      const auto sent =
          server.send_together({{"SET", "k", "a", "NX", "PX", "600000"}, {"SAVE"}, {"DEL", "gone"}});
      server.settle();
      CHECK(server.reply(sent[0]) == "held");
      server.kill();
    }
    disk.set_read_only(false);
    Process server(disk, options);
    CHECK(is_granted(server.ask({"LOCK", "k", "b", "600000"})));
  }
}

TEST_CASE("store: a grant that ends in the same iteration gets no reply if its token is not written") {
  for (const Words& options : kPolicies) {
    CAPTURE(options);
    set_rig_clock(0);
    CrashFiles disk;
    Process server(disk, options);
    disk.set_read_only(true);
    const std::string token = token_ahead(60);
    // Only the last state of a key is recorded: here that it is free.
    const size_t grant =
        server.send({"EVAL",
                     "local granted = redis.call('LOCK', KEYS[1], 'a', 600000, 'TOKEN', ARGV[1]) "
                     "redis.call('UNLOCK', KEYS[1], 'a') return granted",
                     "1", "k", token});
    server.settle();
    CHECK(server.reply(grant) == "held");
  }
}

TEST_CASE("store: a stop that cannot write meta sends no reply that waits for it") {
  for (const bool works : {true, false}) {
    set_rig_clock(0);
    SlowMeta disk;
    Process server(disk, {"--save", "", "--appendonly", "no"});
    disk.waits = true;
    const size_t grant = send_far(server, 1);
    CHECK(server.reply(grant) == "held");
    disk.open_gate();
    disk.set_read_only(!works);
    server.stop();
    CHECK(is_granted(server.reply(grant)) == works);
  }
}

}  // namespace holdfast
