// The journal, snapshots and `meta` on a disk that loses unsynced data: crash and reopen, again and again.
// Synced changes are restored, and the restored state is one that existed.
#include <doctest/doctest.h>
#include <uv.h>

#include <algorithm>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "core/persist/snapshot.h"
#include "files/crash_files.h"
#include "io/disk/journal_writer.h"
#include "io/disk/meta_keeper.h"
#include "io/disk/recovery.h"
#include "io/disk/snapshot_writer.h"
#include "io/os/jobs.h"
#include "session.h"
#include "state_text.h"

namespace holdfast {
namespace {

struct Loop {
  uv_loop_t loop;
  Loop() { uv_loop_init(&loop); }
  ~Loop() { CHECK(uv_loop_close(&loop) == 0); }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  void run() { uv_run(&loop, UV_RUN_DEFAULT); }
};

// Returns keys and holds, without lock-delays: which of those have ended depends on the time of the check.
std::string kept(Engine& engine) {
  const std::string text = state_text(engine, session_time(0));
  return text.substr(0, text.find("beside: "));
}

// The wall clock is set in the meantime, which must have no effect.
Config of_one_boot() {
  Config config = session_config();
  config.boot_id = "boot";
  return config;
}

// One life of a server's data on the disk, without a server.
class Life {
 public:
  Life(CrashFiles& files, uint64_t seed) : files_(files), dice_(seed), journal_(files, &loop_.loop) {}

  // Reads the folder. Returns the restored state.
  std::string start() {
    const Now now = session_time(0).with_ahead_ms(dice_.between(0, 1'000'000'000'000));
    Recovery recovery(files_, engine_, now, {.skip_unknown = false, .lossless = false});
    while (true) {
      Result<bool> all = recovery.step();
      if (!all) FAIL(all.error());
      if (*all) break;
    }
    std::string state = kept(engine_);
    engine_.keep_journal();
    engine_.finish_loading(session_time(0));
    engine_.check_invariants();
    next_journal_ = recovery.next_journal();
    const bool runs_deferred = recovery.journal() != 0;
    Result<Done> begun = runs_deferred ? journal_.resume(recovery.journal(), recovery.next_sequence())
                                       : journal_.begin(next_journal_++);
    REQUIRE(begun);
    session_ = std::make_unique<RandomSession>(engine_, dice_.below(1000000), RandomSession::Clock::kIsSet);
    REQUIRE(journal_.commit(engine_.journal_records()));  // the records of ended sessions
    engine_.clear_journal_records();
    return state;
  }

  // Runs one loop iteration. Returns false if the disk rejected the write.
  bool run_iteration() {
    session_->step();
    const bool written = journal_.commit(engine_.journal_records());
    engine_.clear_journal_records();
    return written;
  }
  bool retry() { return journal_.retry(); }
  void sync() {
    journal_.start_sync([] {});
    loop_.run();
    REQUIRE(journal_.all_synced());
  }
  // Makes a snapshot, of which `part` of 4 is done when the machine stops; 4: all. If the disk rejects the
  // new journal, there is no snapshot.
  void save(int part = 4) {
    if (!journal_.begin(next_journal_)) return;
    engine_.begin_journal_file();
    const uint64_t number = next_journal_++;
    Snapshot snapshot(engine_.state(), session_->now(), number, true);
    SnapshotWriter writer(files_, &loop_.loop, dice_.one_in(2) ? 1 : 0);
    if (part == 0) return;
    while (!snapshot.step()) {
    }
    writer.add_now(snapshot.bytes());
    if (part == 1) return;
    writer.finish_now();
    if (part == 2 || !writer.failure().empty()) return;
    journal_.forget_before(journal_.generation());
    for (uint64_t old = 1; old < number; ++old) REQUIRE(files_.remove(journal_name(old)));
  }
  std::string state() { return kept(engine_); }

 private:
  CrashFiles& files_;
  simulation::Dice dice_;
  Loop loop_;
  Engine engine_{of_one_boot()};
  JournalWriter journal_;
  std::unique_ptr<RandomSession> session_;
  uint64_t next_journal_ = 1;
};

}  // namespace

TEST_CASE("crash: synced changes are restored, and the restored state is one that existed") {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    simulation::Dice dice(seed);
    CrashFiles files;
    std::vector<std::string> moments;
    size_t synced = 0;
    for (uint64_t life = 0; life < 4; ++life) {
      CAPTURE(life);
      Life server(files, seed * 10 + life);
      const std::string found = server.start();
      const auto since = moments.begin() + static_cast<std::ptrdiff_t>(synced);
      if (life > 0) CHECK_MESSAGE(std::find(since, moments.end(), found) != moments.end(), found);
      moments = {server.state()};
      synced = 0;
      for (uint64_t turns = dice.below(50); turns > 0; --turns) {
        if (dice.one_in(20)) files.fail_write(1, ENOSPC);
        if (!server.run_iteration()) REQUIRE(server.retry());
        moments.push_back(server.state());
        if (dice.one_in(25)) {
          server.save(static_cast<int>(dice.below(5)));
        } else if (dice.one_in(6)) {
          server.sync();
          synced = moments.size() - 1;
        }
      }
      files.crash(seed + life);
    }
  }
}

TEST_CASE("crash: the disk stops before each change and each sync, one after the other") {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    simulation::Dice dice(seed);
    CrashFiles files;
    std::vector<std::string> moments;
    uint64_t synced = 0;
    constexpr uint64_t kBits = 32;
    Life server(files, seed);
    server.start();
    moments = {server.state()};
    files.keep_images([&] { return moments.size() << kBits | synced; });
    for (int turn = 0; turn < 40; ++turn) {
      REQUIRE(server.run_iteration());
      moments.push_back(server.state());
      if (dice.one_in(4)) {
        server.sync();
        synced = moments.size() - 1;
      } else if (dice.one_in(12)) {
        server.save();
      }
    }
    const std::vector<CrashFiles::Image> images = files.take_images();
    CHECK(images.size() > 40);
    for (size_t i = 0; i < images.size(); ++i) {
      CAPTURE(i);
      const auto oldest = static_cast<std::ptrdiff_t>(images[i].mark & UINT32_MAX);
      const auto newest = static_cast<std::ptrdiff_t>(images[i].mark >> kBits);
      images[i].files->crash(seed + i);
      Life again(*images[i].files, i);
      const std::string found = again.start();
      const auto end = moments.begin() + std::min(newest + 1, std::ssize(moments));
      CHECK_MESSAGE(std::find(moments.begin() + oldest, end, found) != end, found);
    }
  }
}

TEST_CASE("crash: a killed process loses nothing that was written") {
  CrashFiles files;
  std::string before;
  for (uint64_t life = 0; life < 12; ++life) {
    CAPTURE(life);
    Life server(files, life);
    const std::string found = server.start();
    if (life > 0) CHECK(found == before);
    for (int turns = 0; turns < 40; ++turns) REQUIRE(server.run_iteration());
    before = server.state();
    files.kill();
  }
}

TEST_CASE("store: a failed sync is final for its journal, until a snapshot replaces it") {
  CrashFiles files;
  Loop loop;
  JournalWriter journal(files, &loop.loop);
  REQUIRE(journal.begin(1));
  REQUIRE(journal.commit("one"));
  files.fail_sync(1, EIO);
  journal.start_sync([] {});
  loop.run();
  CHECK(journal.sync_failed());
  CHECK(journal.failure().find("journal.1") != std::string::npos);
  CHECK_FALSE(journal.all_synced());
  CHECK(journal.commit("two"));  // it is written, but not surely kept
  CHECK(journal.sync_failed());
  REQUIRE(journal.begin(2));
  journal.forget_before(journal.generation());  // the snapshot is complete
  CHECK(journal.failure().empty());
  CHECK_FALSE(journal.all_synced());
  journal.start_sync([] {});
  loop.run();
  CHECK(journal.all_synced());
}

TEST_CASE("store: a failed sync of the journal before a snapshot counts until the snapshot is in place") {
  CrashFiles files;
  Loop loop;
  JournalWriter journal(files, &loop.loop);
  REQUIRE(journal.begin(1));
  REQUIRE(journal.commit("one"));
  REQUIRE(journal.begin(2));  // the snapshot begins
  const uint64_t snapshot = journal.generation();
  REQUIRE(journal.commit("two"));
  files.fail_sync(1, EIO);  // of the first journal
  journal.start_sync([] {});
  loop.run();
  CHECK(journal.sync_failed());
  CHECK_FALSE(journal.all_synced());
  journal.forget_before(snapshot);
  CHECK(journal.failure().empty());
}

TEST_CASE("store: a failed sync of the journal after a snapshot is not mended by that snapshot") {
  CrashFiles files;
  Loop loop;
  JournalWriter journal(files, &loop.loop);
  REQUIRE(journal.begin(1));
  REQUIRE(journal.begin(2));  // the snapshot begins
  const uint64_t snapshot = journal.generation();
  REQUIRE(journal.commit("after"));
  files.fail_sync(2, EIO);
  journal.start_sync([] {});
  loop.run();
  journal.forget_before(snapshot);
  CHECK(journal.sync_failed());
  CHECK(journal.failure().find("journal.2") != std::string::npos);
  CHECK_FALSE(journal.all_synced());
  REQUIRE(journal.begin(3));
  journal.forget_before(journal.generation());
  CHECK(journal.failure().empty());
}

TEST_CASE("store: a failed write is kept whole, in its order, until the disk accepts it") {
  CrashFiles files;
  Loop loop;
  JournalWriter journal(files, &loop.loop);
  REQUIRE(journal.begin(1));
  files.fail_write(1, ENOSPC);
  CHECK_FALSE(journal.commit("one"));
  files.shorten_write(1, 5);
  CHECK_FALSE(journal.failure().empty());
  CHECK_FALSE(journal.begin(2));  // waiting frames would be lost
  CHECK(journal.commit("two"));
  CHECK(journal.failure().empty());
  JournalScanner scanner(files.bytes("journal.1"));
  CHECK(scanner.next()->payload == "one");
  CHECK(scanner.next()->payload == "two");
  CHECK_FALSE(scanner.next());
  CHECK(scanner.verdict().state == JournalState::kClean);
}

TEST_CASE(
    "store: records that fit in no frame are not written, nor is a later one, until a snapshot has them") {
  CrashFiles files;
  Loop loop;
  JournalWriter journal(files, &loop.loop);
  REQUIRE(journal.begin(1));
  REQUIRE(journal.commit("one", 3));
  const std::string before = files.bytes("journal.1");
  CHECK_FALSE(journal.commit("four", 3));
  const uint64_t position = journal.position();
  CHECK_FALSE(journal.commit("two"));
  CHECK_FALSE(journal.retry());
  CHECK(journal.sync_failed());  // so the store begins a snapshot
  CHECK(journal.failure().find("more than 4 GiB") != std::string::npos);
  CHECK(files.bytes("journal.1") == before);
  REQUIRE(journal.begin(2));  // the snapshot begins
  const uint64_t snapshot = journal.generation();
  CHECK_FALSE(journal.commit("six"));
  CHECK_FALSE(journal.is_written(position));
  CHECK_FALSE(JournalScanner(files.bytes("journal.2")).next());
  journal.forget_before(snapshot);
  const auto six = JournalScanner(files.bytes("journal.2")).next();
  REQUIRE(six);
  CHECK(six->sequence == 3);  // the frame 2 is missing: without the snapshot a start would end before it
  CHECK(journal.is_written(position));
  CHECK(journal.all_written());
  CHECK(journal.failure().empty());
}

TEST_CASE("store: a record of which a full disk accepted a part is cut off, and written whole later") {
  CrashFiles files;
  Loop loop;
  JournalWriter journal(files, &loop.loop);
  REQUIRE(journal.begin(1));
  REQUIRE(journal.commit("one"));
  const size_t whole = files.bytes("journal.1").size();
  files.set_capacity(whole + 5);
  CHECK_FALSE(journal.commit("two"));
  CHECK(files.bytes("journal.1").size() == whole);
  files.set_capacity(std::nullopt);
  CHECK(journal.retry());
  JournalScanner scanner(files.bytes("journal.1"));
  CHECK(scanner.next()->payload == "one");
  CHECK(scanner.next()->payload == "two");
  CHECK_FALSE(scanner.next());
  CHECK(scanner.verdict().state == JournalState::kClean);
}

TEST_CASE("store: a late write of meta does not undo the stop") {
  CrashFiles files;
  Loop loop;
  MetaKeeper meta(files, &loop.loop);
  REQUIRE(meta.begin(std::string(kFolderIdDigits, 'a'), IssuedTokens{1, {}, 0}, {}, "boot", {"boot", 7}));
  std::promise<void> stopped;
  const std::shared_future<void> stop = stopped.get_future().share();
  constexpr int kThreads = 8;  // more than the pool has by default
  for (int i = 0; i < kThreads; ++i)
    run_job(
        &loop.loop, [stop] { stop.wait(); }, [] {});
  meta.keep_ahead(Tokens(100'000'000), {}, 0, [] {});
  REQUIRE(meta.end(IssuedTokens{100'000'000, {}, 0}, true, {}, 5));
  stopped.set_value();
  loop.run();
  auto found = meta.read();
  REQUIRE(found);
  CHECK((*found)->clean);
  CHECK((*found)->journal_sequence == 5);
}

TEST_CASE("crash: no token covered by meta is issued again, and no lost hold is granted too early") {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    simulation::Dice dice(seed);
    CrashFiles files;
    Loop loop;
    uint64_t given = 1000;
    uint64_t ahead = 0;  // for one key
    Horizon until;
    for (int life = 0; life < 4; ++life) {
      MetaKeeper meta(files, &loop.loop);
      auto found = meta.read();
      REQUIRE(found);
      REQUIRE(found->has_value() == (life > 0));
      if (life > 0) {
        CHECK((*found)->token_reserve >= given);
        REQUIRE((*found)->tokens_ahead.size() <= 1);
        const uint64_t kept = (*found)->tokens_ahead.empty() ? 0 : (*found)->tokens_ahead[0].token;
        CHECK(kept >= ahead);
        ahead = kept;
        CHECK((*found)->horizon_ms >= until.wall_ms);
        CHECK((*found)->horizon_boot_ms >= until.boot_ms);
        given = (*found)->token_reserve;
      }
      Tokens tokens(given);
      if (ahead > 0) tokens.restore({"k", ahead});
      REQUIRE(meta.begin(std::string(kFolderIdDigits, 'a'), tokens.issued(), until, "boot", {"boot", 7}));
      for (uint64_t step = dice.below(20); step > 0; --step) {
        const Key key{"k", 1};
        if (dice.one_in(3)) tokens.raise(key, {tokens.last(key) + kMaxToken / 100}, 0);
        if (dice.one_in(3)) tokens.raise(key, {tokens.last(key) + dice.below(90'000'000)}, 0);
        tokens.raise_all({given + dice.below(90'000'000)});
        const uint64_t token = tokens.largest();
        Horizon holds = until;  // the wall clock may have been set in the meantime
        holds.wall_ms += dice.between(-90'000, 90'000);
        holds.boot_ms += static_cast<int64_t>(dice.below(90'000));
        meta.keep_ahead(tokens, holds, static_cast<int64_t>(dice.below(90'000)), [] {});
        if (dice.one_in(2)) loop.run();
        if (!meta.covers(tokens, holds)) continue;
        given = token;
        if (tokens.ahead_keys() > 0) ahead = tokens.issued(true).ahead[0].token;
        until = holds;
      }
      loop.run();
      files.crash(seed);
    }
  }
}

}  // namespace holdfast
