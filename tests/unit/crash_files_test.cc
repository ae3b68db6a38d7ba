// The test folder loses in a crash all that it may lose, and nothing that was synced. Two users of the
// file layer run on it: replace, and a journal that grows.
#include "files/crash_files.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <set>
#include <string>

#include "core/codec/journal_frame.h"

namespace holdfast {

namespace {

constexpr uint64_t kSeeds = 200;

template <class T>
T good(Result<T> result) {
  if (!result) FAIL(result.error());
  return std::move(*result);
}

// Makes a synced file with this name and these bytes.
std::unique_ptr<File> synced_file(Files& files, const std::string& name, std::string_view bytes) {
  std::unique_ptr<File> file = good(files.append(name));
  REQUIRE(write_all(*file, bytes) == 0);
  REQUIRE(file->sync() == 0);
  good(files.sync_folder());
  return file;
}

// Returns the contents of a file after the crashes of all seeds, each in its own folder; "-" if it does
// not exist.
template <class Prepare>
std::set<std::string> outcomes(const std::string& name, Prepare prepare) {
  std::set<std::string> left;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    CrashFiles files;
    prepare(files);
    files.crash(seed);
    left.insert(good(files.exists(name)) ? good(files.read(name)) : "-");
  }
  return left;
}

using Outcomes = std::set<std::string>;

}  // namespace

TEST_CASE("crash: synced bytes survive; of the others a first part does, its last sector perhaps damaged") {
  const std::string synced(600, 's');
  const std::string more(1500, 'm');
  bool is_damaged = false;
  std::set<size_t> sizes;
  for (const std::string& left : outcomes("f", [&](CrashFiles& files) {
         REQUIRE(write_all(*synced_file(files, "f", synced), more) == 0);
       })) {
    REQUIRE(left.size() >= synced.size());
    const size_t sector = left.empty() ? 0 : std::max(synced.size(), (left.size() - 1) / 512 * 512);
    REQUIRE(left.substr(0, sector) == (synced + more).substr(0, sector));
    is_damaged |= left != (synced + more).substr(0, left.size());
    sizes.insert(left.size());
  }
  CHECK(is_damaged);
  CHECK(sizes.size() > 50);
}

TEST_CASE("crash: a new file surely survives only when file and folder are synced") {
  CHECK(outcomes("f", [](CrashFiles& files) { synced_file(files, "f", "x"); }) == Outcomes{"x"});
  CHECK(outcomes("f", [](CrashFiles& files) {
          const auto file = good(files.append("f"));
          REQUIRE(write_all(*file, "x") == 0);
          REQUIRE(file->sync() == 0);
        }) == Outcomes{"-", "x"});
  CHECK(outcomes("f", [](CrashFiles& files) {
          good(files.append("f"));
          good(files.sync_folder());
        }) == Outcomes{""});
}

TEST_CASE("crash: a removal or rename may be undone until the folder is synced") {
  const auto remove = [](CrashFiles& files) {
    synced_file(files, "f", "x");
    good(files.remove("f"));
  };
  const auto rename = [](CrashFiles& files) {
    synced_file(files, "f", "old");
    synced_file(files, "g", "new");
    good(files.rename("g", "f"));
  };
  CHECK(outcomes("f", remove) == Outcomes{"-", "x"});
  CHECK(outcomes("f", rename) == Outcomes{"old", "new"});
  const auto then_sync = [](auto prepare) {
    return [prepare](CrashFiles& files) {
      prepare(files);
      good(files.sync_folder());
    };
  };
  CHECK(outcomes("f", then_sync(remove)) == Outcomes{"-"});
  CHECK(outcomes("f", then_sync(rename)) == Outcomes{"new"});
}

TEST_CASE("crash: a truncation may be undone until the file is synced") {
  const auto cut = [](CrashFiles& files) {
    REQUIRE(synced_file(files, "f", "0123456789")->truncate(4) == 0);
  };
  CHECK(outcomes("f", cut) == Outcomes{"0123", "0123456789"});
  CHECK(outcomes("f", [&](CrashFiles& files) {
          cut(files);
          REQUIRE(good(files.append("f"))->sync() == 0);
        }) == Outcomes{"0123"});
}

TEST_CASE("crash: no later sync restores the data that a failed sync lost") {
  const Outcomes left = outcomes("f", [](CrashFiles& files) {
    const auto file = synced_file(files, "f", "old ");
    REQUIRE(write_all(*file, "new") == 0);
    files.fail_sync(1, EIO);
    CHECK(file->sync() == EIO);
    CHECK(file->sync() == 0);
    CHECK(good(files.append("f"))->sync() == 0);
  });
  CHECK(left.contains("old "));
  CHECK(!left.contains("-"));
}

TEST_CASE("crash: open files are unusable after it, and after the process was killed") {
  CrashFiles files;
  const auto crashed = synced_file(files, "f", "x");
  files.crash(1);
  CHECK(crashed->write("y").error == EBADF);
  CHECK(crashed->sync() == EBADF);
  const auto killed = good(files.append("f"));
  files.kill();
  CHECK(killed->write("y").error == EBADF);
  CHECK(good(files.read("f")) == "x");
}

TEST_CASE("crash: a killed process loses nothing, but a later crash of the machine may") {
  const auto kill = [](CrashFiles& files) {
    REQUIRE(write_all(*good(files.append("f")), "x") == 0);
    files.kill();
    CHECK(good(files.read("f")) == "x");
  };
  const Outcomes left = outcomes("f", kill);
  CHECK(left.contains("-"));
  CHECK(left.contains(""));
  CHECK(left.contains("x"));
}

TEST_CASE("crash: the n-th write or sync fails once, as configured") {
  CrashFiles files;
  const auto file = good(files.append("f"));
  files.fail_write(2, EIO);
  CHECK(file->write("a").error == 0);
  CHECK(file->write("b").error == EIO);
  CHECK(file->write("c").error == 0);
  files.shorten_write(1, 2);
  CHECK(file->write("defg").bytes == 2);
  CHECK(good(files.read("f")) == "acde");
  files.fail_folder_sync(1, EIO);
  CHECK(!files.sync_folder());
  CHECK(files.sync_folder());
  CHECK(files.writes() == 4);
}

TEST_CASE("crash: a full disk accepts as many bytes as fit, and works again when there is room") {
  CrashFiles files;
  files.set_capacity(10);
  good(files.create("other", ""));
  REQUIRE(write_all(*good(files.append("other")), "1234") == 0);
  const auto file = good(files.append("f"));
  CHECK(write_all(*file, "12345678") == ENOSPC);
  CHECK(good(files.read("f")) == "123456");
  CHECK(file->truncate(0) == 0);
  good(files.remove("other"));
  CHECK(write_all(*file, "12345678") == 0);
}

TEST_CASE("crash: a read-only or removed folder and another process's lock act as on a real disk") {
  CrashFiles files;
  const auto file = synced_file(files, "f", "x");
  files.set_read_only(true);
  CHECK(file->write("y").error == EROFS);
  CHECK(!files.append("g"));
  CHECK(!files.rename("f", "g"));
  files.set_read_only(false);
  files.lock_by_process(77);
  Result<Done> locked = files.lock();
  REQUIRE(!locked);
  CHECK(locked.error() == "the folder folder is in use by process 77; each server needs its own");
  files.remove_folder();
  CHECK(files.folder_removed());
  CHECK(file->sync() == ENOENT);
  CHECK(!files.reopen_folder());
  files.restore_folder();
  CHECK(files.reopen_folder());
  CHECK(good(files.list()).empty());
}

TEST_CASE("replace: at any failure or crash the old file or the new one exists in full") {
  const std::string old_text(700, 'o');
  const std::string new_text(1200, 'n');
  Outcomes seen;
  for (int fault = 0; fault < 5; ++fault) {
    const Outcomes left = outcomes("meta", [&](CrashFiles& files) {
      good(files.replace("meta", old_text));
      if (fault == 1) files.fail_write(1, EIO);
      if (fault == 2) files.shorten_write(1, 5);
      if (fault == 3) files.fail_sync(1, EIO);
      if (fault == 4) files.fail_folder_sync(1, EIO);
      const bool is_done = static_cast<bool>(files.replace("meta", new_text));
      REQUIRE(is_done == (fault == 0 || fault == 2));
      REQUIRE(good(files.list()) == std::vector<std::string>{"meta"});
    });
    if (fault == 0 || fault == 2) CHECK(left == Outcomes{new_text});
    if (fault == 1 || fault == 3) CHECK(left == Outcomes{old_text});
    if (fault == 4) CHECK(left == Outcomes{old_text, new_text});
  }
}

TEST_CASE("journal: after any crash all synced frames exist, and later frames are whole or torn") {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    simulation::Dice dice(seed);
    CrashFiles files;
    std::string head;
    append_journal_head(head, 1, 0);
    const auto file = synced_file(files, "journal.1", head);
    const uint64_t written = 1 + dice.below(40);
    const uint64_t synced = dice.below(written + 1);
    for (uint64_t sequence = 0; sequence < written; ++sequence) {
      std::string out;
      const size_t frame = begin_frame(out);
      out.append(dice.below(300), static_cast<char>(sequence));
      REQUIRE(end_frame(out, frame, sequence));
      REQUIRE(write_all(*file, out) == 0);
      if (sequence + 1 == synced) REQUIRE(file->sync() == 0);
    }
    files.crash(seed);
    const std::string bytes = good(files.read("journal.1"));
    JournalScanner scanner(bytes);
    while (const std::optional<JournalFrame> frame = scanner.next()) {
      const auto fill = static_cast<char>(frame->sequence);
      REQUIRE(frame->payload == std::string(frame->payload.size(), fill));
    }
    REQUIRE(scanner.next_sequence() >= synced);
    REQUIRE(scanner.next_sequence() <= written);
    const JournalState state = scanner.verdict().state;
    REQUIRE((state == JournalState::kClean || state == JournalState::kTorn));
  }
}

}  // namespace holdfast
