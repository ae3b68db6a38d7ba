// Loads the snapshot and the journals into the engine.
#include "io/disk/recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "io/disk/journal_writer.h"
#include "io/disk/snapshot_writer.h"
#include "io/os/log.h"

namespace holdfast {

namespace {

// The input of one step: a few milliseconds of work.
constexpr size_t kJournalBytesAStep = size_t{256} << 10U;
constexpr int kChunksAStep = 4;

Failure newer_journal(const Files& files, uint64_t number, uint32_t version) {
  return Failure{
      fmt::format("{}/{}: written by a newer version of Holdfast (journal version {}): use that version",
                  files.path(), journal_name(number), version)};
}

}  // namespace

Result<std::vector<uint64_t>> list_journals(Files& files) {
  Result<std::vector<std::string>> names = files.list();
  if (!names) return Failure{names.error()};
  constexpr std::string_view kPrefix = "journal.";
  std::vector<uint64_t> numbers;
  for (const std::string& name : *names) {
    if (!name.starts_with(kPrefix)) continue;
    uint64_t number = 0;
    const auto [end, error] =
        std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), number);
    if (error == std::errc() && *end == '\0' && journal_name(number) == name) numbers.push_back(number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

Result<Done> reject_newer_journals(Files& files) {
  Result<std::vector<uint64_t>> numbers = list_journals(files);
  if (!numbers) return Failure{numbers.error()};
  for (const uint64_t number : *numbers) {
    auto file = files.open(journal_name(number));
    if (!file) return Failure{file.error()};
    std::array<char, kJournalHeadBytes> head{};
    Result<size_t> size = (*file)->read(0, head);
    if (!size) return Failure{size.error()};
    const JournalScanner scanner(std::string_view(head.data(), *size));
    if (scanner.verdict().state == JournalState::kNewer)
      return newer_journal(files, number, scanner.verdict().version);
  }
  return Done{};
}

// There are two snapshots only if a crash came between the rename and the removal of the old file, after a
// change of `compress`. Then the older one is obsolete. It has the lower journal number: each snapshot
// takes a new one, also without journals.
Result<SnapshotFile> find_snapshot(Files& files) {
  SnapshotFile found;
  for (const char* name : {kSnapshotName, kPlainSnapshotName}) {
    Result<bool> there = files.exists(name);
    if (!there) return Failure{there.error()};
    if (!*there) continue;
    auto file = Gunzip::open(files, name);
    if (!file) return Failure{fmt::format("{}: {}", name, file.error())};
    auto bytes = (*file)->next();
    const PeekedJournal journal = bytes ? peek_journal(*bytes) : PeekedJournal{};
    if (!found.name.empty() && journal.number < found.journal.number) continue;
    found = {name, journal};
  }
  return found;
}

JournalChain chain_journals(const std::vector<uint64_t>& all, std::optional<uint64_t> snapshot,
                            bool named) {
  JournalChain chain;
  const uint64_t first = std::max<uint64_t>(snapshot.value_or(1), 1);
  for (const uint64_t number : all)
    (number < snapshot.value_or(0) ? chain.stale : chain.journals).push_back(number);
  while (chain.gap < chain.journals.size() && chain.journals[chain.gap] == first + chain.gap) ++chain.gap;
  if (chain.gap < chain.journals.size() || (named && chain.journals.empty()))
    chain.missing = first + chain.gap;
  chain.needed = chain.gap == 0 && snapshot;
  return chain;
}

Recovery::Recovery(Files& files, Engine& engine, Now now, Rules rules)
    : files_(files), engine_(engine), now_(now), rules_(rules) {}

Result<Done> Recovery::begin() {
  begun_ = true;
  Result<SnapshotFile> found = find_snapshot(files_);
  if (!found) return Failure{found.error()};
  if (!found->name.empty()) {
    snapshot_name_ = found->name;
    auto file = Gunzip::open(files_, snapshot_name_);
    if (!file) return Failure{file.error()};
    snapshot_ = std::move(*file);
    total_bytes_ += snapshot_->size();
    restore_ = std::make_unique<Restore>(engine_.state(), now_, rules_.skip_unknown);
    return Done{};
  }
  return choose_journals();
}

Result<bool> Recovery::step() {
  if (!begun_) {
    if (Result<Done> done = begin(); !done) return Failure{done.error()};
  }
  if (snapshot_ != nullptr) return step_snapshot();
  return step_journals();
}

Result<bool> Recovery::step_snapshot() {
  const auto failed = [&](const std::string& why) {
    return Failure{
        fmt::format("{0}/{1}: {2}. Restore the file from a copy. If it is damaged, `holdfast check "
                    "--repair {0}/{1}` moves it away, and the next start has neither its data nor that of "
                    "the journals after it",
                    files_.path(), snapshot_name_, why)};
  };
  for (int i = 0; i < kChunksAStep; ++i) {
    Result<std::string_view> bytes = snapshot_->next();
    if (!bytes) return failed(bytes.error());
    if (!bytes->empty()) {
      if (!restore_->feed(*bytes)) return failed(restore_->error());
      scanned_bytes_ = snapshot_->consumed();
      continue;
    }
    if (!restore_->finish()) return failed(restore_->error());
    read_bytes_ += snapshot_->size();
    scanned_bytes_ = 0;
    snapshot_.reset();
    if (Result<Done> done = choose_journals(); !done) return Failure{done.error()};
    return false;
  }
  return false;
}

// Chooses the journals after the snapshot. Fails if one is missing, unless a crash of the machine explains
// it.
Result<Done> Recovery::choose_journals() {
  Result<std::vector<uint64_t>> all = list_journals(files_);
  if (!all) return Failure{all.error()};
  std::optional<uint64_t> snapshot;
  if (restore_ != nullptr) snapshot = first_ = restore_->journal();
  JournalChain chain =
      chain_journals(*all, snapshot, rules_.has_meta && restore_ != nullptr && restore_->journal_follows());
  stale_ = std::move(chain.stale);
  journals_ = std::move(chain.journals);
  if (chain.refuses(rules_.lossless)) {
    return Failure{
        fmt::format("{}: {} is missing, and its changes with it. Restore it, or run {} to start "
                    "without them and all later changes",
                    files_.path(), journal_name(chain.missing), repair_of_folder())};
  }
  if (chain.missing != 0) {
    if (Result<Done> done = set_aside(chain.gap, journal_name(chain.missing) + " is missing"); !done)
      return done;
  }
  return journals_.empty() ? Done{} : open_journal();
}

Result<Done> Recovery::open_journal() {
  Result<std::string> bytes = files_.read(journal_name(journals_[at_]));
  if (!bytes) return Failure{bytes.error()};
  bytes_ = std::move(*bytes);
  total_bytes_ += bytes_.size();
  scanner_ = std::make_unique<JournalScanner>(bytes_);
  engine_.begin_replayed_file();
  return Done{};
}

// Whether frames are missing between the previous journal and this one.
bool Recovery::misses_frames() const {
  return at_ > 0 && scanner_->number() != 0 && scanner_->first_sequence() != next_sequence_;
}

// The previous journal ends between two frames, before this one begins. A crash of the machine causes that
// if the end of the previous journal was not synced. Then no frame of this one was promised, as journals
// are synced in order.
Result<bool> Recovery::end_before_gap() {
  const std::string name = journal_name(journals_[at_]);
  if (rules_.lossless) {
    return Failure{
        fmt::format("{}/{}: it begins with record {}, but the journal before it ends with record {}: the "
                    "records between are missing, and a crash of the process does not cause that. Restore "
                    "{}, or run {} to start without the later changes",
                    files_.path(), name, scanner_->first_sequence(), next_sequence_ - 1,
                    journal_name(journals_[at_] - 1), repair_of_folder())};
  }
  const std::string why = fmt::format("the end of {} is missing, from record {} on",
                                      journal_name(journals_[at_] - 1), next_sequence_);
  if (Result<Done> done = set_aside(at_, why); !done) return Failure{done.error()};
  return true;
}

// Renames the journals from index `from` on and does not read them. Their bytes stay under the new name.
// Syncs the folder: else a second crash could bring the old names back, behind records of this run.
Result<Done> Recovery::set_aside(size_t from, const std::string& why) {
  if (from >= journals_.size()) return Done{};
  for (size_t i = from; i < journals_.size(); ++i) {
    const std::string name = journal_name(journals_[i]);
    log_line(LogLevel::kWarning,
             fmt::format("{} skipped and renamed to {}.damaged: records before it are missing: {}", name,
                         name, why));
    if (Result<Done> done = files_.rename(name, name + ".damaged"); !done) return done;
  }
  journals_.resize(from);
  return files_.sync_folder();
}

Result<bool> Recovery::step_journals() {
  if (at_ >= journals_.size()) return true;
  if (misses_frames()) return end_before_gap();
  const std::string name = journal_name(journals_[at_]);
  for (size_t done = 0; done < kJournalBytesAStep;) {
    const auto frame = scanner_->next();
    if (!frame) return close_journal();
    ++frames_;
    done += frame->payload.size();
    scanned_bytes_ = frame->offset;
    if (const std::string wrong = engine_.replay(frame->payload, now_); !wrong.empty()) {
      return Failure{
          fmt::format("{}/{}, the frame at byte {}: {}", files_.path(), name, frame->offset, wrong)};
    }
  }
  return false;
}

// Handles the end of a journal, intact or not. Later journals may follow a torn one, if their bytes
// happened to reach the disk first. Nothing in them was promised, as promised frames are synced in order.
Result<bool> Recovery::close_journal() {
  const JournalVerdict& verdict = scanner_->verdict();
  const std::string name = journal_name(journals_[at_]);
  const auto failed = [&](const std::string& why) {
    return Failure{fmt::format("{}/{}: {}", files_.path(), name, why)};
  };
  if (verdict.state == JournalState::kNewer) return newer_journal(files_, journals_[at_], verdict.version);
  if (verdict.state == JournalState::kDamaged) {
    return failed(
        fmt::format("damaged at byte {}: {}. Good records follow, so a crash did not cause this. {}",
                    verdict.offset, verdict.why, remedy(verdict, name)));
  }
  const bool lacks_head = verdict.state == JournalState::kTorn && scanner_->number() == 0;
  if (!lacks_head && scanner_->number() != journals_[at_]) return failed("it has another journal's number");
  if (verdict.state == JournalState::kTorn && rules_.lossless && at_ + 1 < journals_.size()) {
    const std::string next = journal_name(journals_[at_ + 1]);
    return failed(
        fmt::format("damaged at byte {}: {}. {} follows, so the end of the process did not cause "
                    "this. Restore {}, or run {} to start without the later changes",
                    verdict.offset, verdict.why, next, name, repair_of_folder()));
  }
  if (verdict.state == JournalState::kTorn) {
    if (Result<Done> done = cut(name, verdict); !done) return Failure{done.error()};
    const std::string why = fmt::format("the end of {} is missing", name);
    if (Result<Done> done = set_aside(at_ + 1, why); !done) return Failure{done.error()};
  } else if (Result<Done> done = keep(name, bytes_); !done) {
    return Failure{done.error()};
  }
  read_bytes_ += bytes_.size();
  scanned_bytes_ = 0;
  if (lacks_head) {
    misses_named_ = at_ == 0 && restore_ != nullptr && restore_->journal_follows();
    journals_.pop_back();  // it has no head: a new journal of this number begins
    journal_ = at_ == 0 ? 0 : journals_[at_ - 1];
    // The records go on in the journal before it. If the process ends within a write there, the next start
    // must find no journal behind the incomplete record.
    if (at_ > 0) static_cast<void>(files_.remove(name));
    return true;
  }
  journal_ = journals_[at_];
  next_sequence_ = scanner_->next_sequence();
  if (++at_ >= journals_.size()) return true;
  if (Result<Done> done = open_journal(); !done) return Failure{done.error()};
  return false;
}

// Returns the advice for a damaged journal: the use of `holdfast check`, if it can repair the file.
std::string Recovery::remedy(const JournalVerdict& verdict, const std::string& name) const {
  const bool has_head = verdict.offset > 0;
  const bool head_can_be_made = !has_head && verdict.next_offset == kJournalHeadBytes;
  return fmt::format("{}`holdfast check --repair {}/{}` {}, and keeps the original",
                     has_head || head_can_be_made ? "" : "Restore the file from a copy, or ", files_.path(),
                     name,
                     has_head           ? "cuts it there"
                     : head_can_be_made ? "rewrites the file's head"
                                        : "drops its records and those of all later journals");
}

std::string Recovery::repair_of_folder() const {
  return fmt::format("`holdfast check --repair {}`", files_.path());
}

// Makes the bytes durable, because new replies rely on them. A killed process may have left bytes that are
// only in the system's memory. If a sync of them has failed, a sync of this file reports success and does
// not write them: so they are written to a new file.
Result<Done> Recovery::keep(const std::string& name, std::string_view bytes) {
  if (rules_.clean) {
    auto file = files_.append(name);
    if (file && (*file)->sync() == 0) return Done{};
  }
  // One name for all: what a crash leaves of it the next start replaces.
  Result<Done> replaced = files_.replace(name, bytes, "journal.tmp");
  if (replaced) return replaced;
  log_line(LogLevel::kWarning, fmt::format("{} cannot be written again: {}; a snapshot must replace it",
                                           name, replaced.error()));
  may_lack_bytes_ = true;
  return Done{};
}

Result<Done> Recovery::cut(const std::string& name, const JournalVerdict& verdict) {
  // The file keeps its name, which the snapshot may need: the next journal of this number replaces it.
  if (verdict.offset == 0) {
    log_line(LogLevel::kWarning,
             fmt::format("{}: dropped its {} bytes: a crash left it without a complete head: {}", name,
                         verdict.bytes, verdict.why));
    return Done{};
  }
  log_line(LogLevel::kWarning, fmt::format("{}: cut off its last {} bytes, from byte {} on: a crash left "
                                           "them incomplete, and no reply relied on them: {}",
                                           name, verdict.bytes, verdict.offset, verdict.why));
  auto file = files_.append(name);
  if (!file) return Failure{file.error()};
  if (const int error = (*file)->truncate(verdict.offset); error != 0) {
    return Failure{fmt::format("{} cannot be cut: {}", name, std::strerror(error))};
  }
  return keep(name, std::string_view(bytes_).substr(0, verdict.offset));
}

}  // namespace holdfast
