// The snapshot gets its name last: until then a server refuses the folder, and another restore may begin
// again in it. This file must not include the client's headers: see check.cc.
#include "cli/restore.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/check_snapshot.h"
#include "cli/output.h"
#include "cli/printable.h"
#include "cli/status.h"
#include "core/codec/backup.h"
#include "core/codec/journal_frame.h"
#include "io/disk/journal_writer.h"
#include "io/disk/meta_repair.h"
#include "io/disk/snapshot_writer.h"
#include "io/os/clock.h"
#include "io/os/files.h"
#include "io/os/host_info.h"

namespace holdfast {
namespace {

constexpr size_t kReadBytes = size_t{256} << 10U;
constexpr int kRejected = 1;  // the backup is damaged, or the folder is in use

struct Fault {
  int status;
  std::string why;
};

// A folder to which a backup is restored. Leaves it as it was, unless commit() succeeds.
class Restoration {
 public:
  explicit Restoration(std::string dir) : dir_(std::move(dir)) {}
  ~Restoration();
  Restoration(const Restoration&) = delete;
  Restoration& operator=(const Restoration&) = delete;

  std::optional<Fault> open();
  // Copies the snapshot out of the backup in `fd`, and checks it.
  std::optional<Fault> read(int fd, const std::string& path);
  Result<Done> commit();

  const BackupHead& head() const { return *reader_.head(); }
  const SnapshotFacts& facts() const { return facts_; }
  const std::string& snapshot() const { return snapshot_; }

 private:
  Result<Done> write(std::string_view data);
  Meta restored_meta() const;
  Result<Done> give_to_owner();

  std::string dir_;
  std::unique_ptr<Files> files_;
  std::unique_ptr<File> file_;
  bool made_folder_ = false;
  bool made_lock_ = false;
  bool done_ = false;
  std::vector<std::string> made_;  // files beside the snapshot
  BackupReader reader_;
  SnapshotFacts facts_;
  std::string snapshot_;  // the name that it gets
};

Restoration::~Restoration() {
  if (files_ != nullptr && !done_) {
    file_.reset();
    made_.emplace_back(kRestoreName);
    if (made_lock_) made_.emplace_back("lock");
    for (const std::string& name : made_) static_cast<void>(files_->remove(name));
  }
  if (made_folder_ && !done_) rmdir(dir_.c_str());
}

// The files of a restore that was interrupted are replaced: the one with the temporary name marks them.
std::optional<Fault> Restoration::open() {
  made_folder_ = mkdir(dir_.c_str(), S_IRWXU) == 0;
  if (!made_folder_ && errno != EEXIST)
    return Fault{kNoOutput, fmt::format("cannot make the folder {}: {}", dir_, std::strerror(errno))};
  auto files = open_folder(dir_);
  if (!files) return Fault{kNoOutput, files.error()};
  auto names = (*files)->list();
  if (!names) return Fault{kNoOutput, names.error()};
  const bool unfinished = std::ranges::count(*names, kRestoreName) > 0;
  const auto other = std::ranges::find_if(*names, [&](const std::string& name) {
    const bool own = name == "lock" || name == "lost+found";
    const bool of_restore = name == kRestoreName || name == "meta" || name.starts_with("journal.");
    return !own && !(unfinished && of_restore);
  });
  if (other != names->end()) {
    return Fault{kRejected,
                 fmt::format("{} is not empty: it has {}. Restore to a new folder, or move the files away",
                             dir_, *other)};
  }
  if (Result<Done> locked = (*files)->lock(); !locked) return Fault{kRejected, locked.error()};
  made_lock_ = std::ranges::count(*names, "lock") == 0;
  files_ = std::move(*files);
  auto file = files_->create(kRestoreName, kRestoreName);
  if (!file) return Fault{kNoOutput, file.error()};
  file_ = std::move(*file);
  for (const std::string& name : *names) {
    if (name == "meta" || name.starts_with("journal.")) static_cast<void>(files_->remove(name));
  }
  return std::nullopt;
}

Result<Done> Restoration::write(std::string_view data) {
  const int error = data.empty() ? 0 : write_all(*file_, data);
  if (error == 0) return Done{};
  return Failure{fmt::format("{}/{} cannot be written: {}", dir_, kRestoreName, std::strerror(error))};
}

std::optional<Fault> Restoration::read(int fd, const std::string& path) {
  const auto damaged = [&](const std::string& why) {
    return Fault{kRejected, fmt::format("{}: {}. Nothing was restored: use another backup", path, why)};
  };
  std::vector<char> bytes(kReadBytes);
  std::string data;
  while (true) {
    const ssize_t got = ::read(fd, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Fault{kRejected, fmt::format("cannot read {}: {}", path, std::strerror(errno))};
    if (got == 0) break;
    data.clear();
    const bool good = reader_.feed({bytes.data(), static_cast<size_t>(got)}, data);
    if (!good) return damaged(reader_.error());
    if (snapshot_.empty() && !data.empty())
      snapshot_ = data.starts_with("\x1f\x8b") ? kSnapshotName : kPlainSnapshotName;
    if (Result<Done> done = write(data); !done) return Fault{kNoOutput, done.error()};
  }
  if (!reader_.finish()) return damaged(reader_.error());
  auto facts = read_snapshot(*files_, kRestoreName);
  if (!facts) return damaged("the snapshot in it is damaged: " + facts.error());
  facts_ = *facts;
  return std::nullopt;
}

// No token that the other server issued, before or after the backup, is issued again: see Meta. And the
// start waits, because locks that were granted after the backup may still be in use.
Meta Restoration::restored_meta() const {
  const BackupHead& head = *reader_.head();
  Meta meta;
  expect_loss(meta);
  meta.id = random_hex(kFolderIdDigits);
  meta.token_reserve =
      std::max(head.meta.token_reserve, static_cast<uint64_t>(std::max<int64_t>(head.taken_us, 0)));
  meta.token_max = meta.token_reserve;
  meta.tokens_ahead = head.meta.tokens_ahead;
  const uint64_t lead_us = std::min(head.token_lead_us, kMaxToken) + kUnknownTokenLead;
  meta.tokens_at_us = head.taken_us - static_cast<int64_t>(lead_us);
  return meta;
}

// Root may restore for the user of the server: the folder's owner gets the files.
Result<Done> Restoration::give_to_owner() {
  struct stat facts {};
  if (geteuid() != 0 || stat(dir_.c_str(), &facts) != 0) return Done{};
  std::vector<std::string> names = made_;
  names.insert(names.end(), {kRestoreName, "lock"});
  for (const std::string& name : names) {
    const std::string path = dir_ + "/" + name;
    if (lchown(path.c_str(), facts.st_uid, facts.st_gid) != 0)
      return Failure{
          fmt::format("cannot give {} to the owner of {}: {}", path, dir_, std::strerror(errno))};
  }
  return Done{};
}

Result<Done> Restoration::commit() {
  if (const int error = file_->sync(); error != 0)
    return Failure{fmt::format("{}/{} cannot be synced: {}", dir_, kRestoreName, std::strerror(error))};
  if (facts_.journal.follows) {  // the snapshot needs it: it is empty
    std::string journal;
    append_journal_head(journal, facts_.journal.number, 1);
    made_.push_back(journal_name(facts_.journal.number));
    if (Result<Done> done = files_->replace(made_.back(), journal); !done) return done;
  }
  made_.emplace_back("meta");
  if (Result<Done> done = files_->replace("meta", format_meta(restored_meta())); !done) return done;
  if (Result<Done> done = give_to_owner(); !done) return done;
  if (Result<Done> done = files_->rename(kRestoreName, snapshot_); !done) return done;
  done_ = true;
  return files_->sync_folder();
}

std::string utc(int64_t us) {
  const int64_t ms = us / 1000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(static_cast<std::time_t>(ms / 1000)),
                     ms % 1000);
}

std::optional<Fault> refuse_clock(const BackupHead& head) {
  const int64_t now_us = read_clock().wall_us;
  if (now_us + static_cast<int64_t>(kUnknownTokenLead) >= head.taken_us) return std::nullopt;
  return Fault{kRejected,
               fmt::format("the clock of this machine is {}, before the time of the backup, {}: set the "
                           "clock. Tokens could come a second time",
                           utc(now_us), utc(head.taken_us))};
}

int report(const Restoration& restored, const std::string& dir, bool json) {
  if (json) {
    const nlohmann::ordered_json row{{"dir", dir},
                                     {"taken_ms", restored.head().taken_us / 1000},
                                     {"snapshot", restored.snapshot()},
                                     {"strings", restored.facts().strings},
                                     {"hashes", restored.facts().hashes},
                                     {"collections", restored.facts().collections}};
    print("{}\n", row.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return 0;
  }
  print(
      "{}: restored the backup of {}: {} strings and locks, {} hashes and locks with several holders, {} "
      "lists, "
      "sets and sorted sets\n",
      printable(dir), utc(restored.head().taken_us), restored.facts().strings, restored.facts().hashes,
      restored.facts().collections);
  print(
      "The first start grants no locks during its recovery-wait, and its tokens are ahead of the clock.\n");
  return 0;
}

int restore_from(int fd, const std::string& path, const std::string& dir, bool json) {
  Restoration restoration(dir);
  std::optional<Fault> fault = restoration.open();
  if (!fault) fault = restoration.read(fd, path == "-" ? "standard input" : path);
  if (!fault) fault = refuse_clock(restoration.head());
  if (fault) return fail(fault->status, "{}", fault->why);
  if (Result<Done> done = restoration.commit(); !done) return fail(kNoOutput, "{}", done.error());
  return report(restoration, dir, json);
}

}  // namespace

int restore_backup(const std::string& path, const std::string& dir, bool json) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file at the limit of RLIMIT_FSIZE is an error, as on a full disk
  const int fd = path == "-" ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(kRejected, "cannot open {}: {}", path, std::strerror(errno));
  const int status = restore_from(fd, path, dir, json);
  if (fd != STDIN_FILENO) close(fd);
  return status;
}

}  // namespace holdfast
