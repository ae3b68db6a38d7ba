// The checks for each kind of file. This file must not include the client's headers: their `Result` differs
// from that of the disk code.
#include "cli/check.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <charconv>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/check_snapshot.h"
#include "cli/output.h"
#include "cli/status.h"
#include "core/base/types.h"
#include "core/codec/journal_frame.h"
#include "core/codec/meta.h"
#include "io/disk/journal_writer.h"
#include "io/disk/meta_keeper.h"
#include "io/disk/meta_repair.h"
#include "io/disk/recovery.h"
#include "io/disk/snapshot_writer.h"
#include "io/os/clock.h"
#include "io/os/files.h"
#include "io/os/host_info.h"

namespace holdfast {
namespace {

using Json = nlohmann::ordered_json;

// The mode of a check, and its findings: printed at once or, for JSON, collected until the end.
struct Check {
  bool repair = false;
  bool json = false;
  bool folder = false;  // the path is a folder, not one of its files
  struct Journal {
    uint64_t first = 0;
    uint64_t next = 0;
  };
  std::map<uint64_t, Journal> journals;  // those with a head: the sequences of their records
  Json rows = Json::array();

  bool report(bool good, const std::string& path, std::string_view what) {
    if (json) {
      rows.push_back({{"path", path}, {"good", good}, {"what", what}});
    } else {
      print("{}: {}: {}\n", path, good ? "good" : "NOT good", what);
    }
    return good;
  }
};

constexpr std::string_view kWaits = "the next start grants no locks during its recovery-wait";

// The folder as the next start of the server on this machine finds it.
struct Folder {
  bool has_meta = false;
  bool lossless = true;  // see Recovery::Rules
  std::optional<uint64_t> snapshot;
  JournalChain chain;

  bool is_behind(uint64_t journal) const { return snapshot && journal < *snapshot; }
};

Result<Folder> read_folder(Files& files) {
  Folder folder;
  Result<bool> has_meta = files.exists("meta");
  if (!has_meta) return Failure{has_meta.error()};
  folder.has_meta = *has_meta;
  Result<std::vector<uint64_t>> journals = list_journals(files);
  if (!journals) return Failure{journals.error()};
  Result<SnapshotFile> snapshot = find_snapshot(files);
  const bool readable = snapshot && !snapshot->name.empty();
  if (readable) folder.snapshot = snapshot->journal.number;
  folder.chain =
      chain_journals(*journals, folder.snapshot, *has_meta && readable && snapshot->journal.follows);
  // If meta is damaged, no start reads the journals.
  Result<std::optional<Meta>> meta = MetaKeeper(files).read();
  if (!meta || !*meta) return folder;
  folder.lossless = kept_writes(**meta, read_boot_id());
  return folder;
}

// Changes meta before records are dropped: the next start accepts the journals as they are, and waits as
// long as lost holds may be in use. Rebuilds a damaged meta, and keeps the original.
Result<Done> mark_loss(Files& files) {
  Result<bool> there = files.exists("meta");
  if (!there) return Failure{there.error()};
  Result<std::string> text = *there ? files.read("meta") : Result<std::string>("");
  if (!text) return Failure{text.error()};
  if (is_newer_meta(*text)) return Failure{"meta was written by a newer version of Holdfast"};
  if (Result<Done> known = reject_newer_journals(files); !known) return known;
  Meta meta;
  if (parse_meta(*text, meta).empty()) {
    expect_loss(meta);
  } else {
    meta = rebuild_meta(*text, static_cast<uint64_t>(read_clock().wall_us), random_hex(kFolderIdDigits));
    if (*there) {
      if (Result<Done> done = files.rename("meta", "meta.damaged"); !done) return done;
    }
  }
  return files.replace("meta", format_meta(meta));
}

// Moves a damaged snapshot away. The next start then renames the journals that need it.
bool drop_snapshot(Check& run, Files& files, const std::string& name, const std::string& path,
                   const std::string& why) {
  Result<Folder> folder = read_folder(files);
  const bool used = folder && (name == "dump.rdb" || name == "dump.rdb.gz") &&
                    (folder->has_meta || !folder->chain.journals.empty());
  if (!used) return run.report(false, path, why);
  if (!run.repair || run.folder) {
    return run.report(
        false, path,
        fmt::format("{}; restore it from a copy, or use `--repair {}` to start without its data "
                    "and that of the journals after it",
                    why, path));
  }
  run.report(false, path, why);
  if (Result<Done> done = mark_loss(files); !done) return run.report(false, path, done.error());
  if (Result<Done> done = files.rename(name, name + ".damaged"); !done)
    return run.report(false, path, done.error());
  if (Result<Done> done = files.sync_folder(); !done) return run.report(false, path, done.error());
  return run.report(true, path, fmt::format("renamed to {}.damaged; {}", name, kWaits));
}

bool check_snapshot(Check& run, Files& files, const std::string& name, const std::string& path) {
  auto facts = read_snapshot(files, name);
  if (!facts) return drop_snapshot(run, files, name, path, facts.error());
  return run.report(true, path, facts->text());
}

// Replaces the file by its good part, `good`, and keeps the original beside it as NAME.damaged.
bool put_in_place(Check& run, Files& files, const std::string& name, const std::string& path,
                  std::string_view good, const std::string& done_what) {
  const std::string kept = name + ".damaged";
  Result<bool> there = files.exists(kept);
  if (!there || *there)
    return run.report(false, path, fmt::format("{} already exists: move it away first", kept));
  if (Result<Done> done = files.rename(name, kept); !done) return run.report(false, path, done.error());
  if (Result<Done> done = files.replace(name, good); !done) return run.report(false, path, done.error());
  return run.report(true, path,
                    fmt::format("{} {} bytes; the original is kept as {}", done_what, good.size(), kept));
}

// Returns the number in a journal's name; nullopt if the name is not that of a journal.
std::optional<uint64_t> number_of_journal(const std::string& name) {
  constexpr std::string_view kPrefix = "journal.";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  uint64_t number = 0;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), number);
  return journal_name(number) == name ? std::optional(number) : std::nullopt;
}

// Returns a journal with a damaged head as a journal with a new one; nullopt if the head's content is
// unknown. The number comes from the name, and the sequence from a good frame right behind the head.
std::optional<std::string> with_new_head(const std::string& name, std::string_view bytes,
                                         const JournalVerdict& v) {
  const std::optional<uint64_t> number = number_of_journal(name);
  if (v.offset != 0 || v.next_offset != kJournalHeadBytes || !number) return std::nullopt;
  std::string whole;
  append_journal_head(whole, *number, v.next_sequence);
  return whole.append(bytes.substr(kJournalHeadBytes));
}

// Writes the new head, if there is one, and cuts the file at the first damage.
bool repair_journal(Check& run, Files& files, const std::string& name, const std::string& path,
                    std::string_view bytes, const std::optional<std::string>& headed) {
  const std::string_view whole = headed ? std::string_view(*headed) : bytes;
  JournalScanner scanner(whole);
  while (scanner.next()) continue;
  const std::string_view good = whole.substr(0, scanner.verdict().offset);
  Result<bool> has_meta = files.exists("meta");  // without meta the journal is a copy
  if (!has_meta) return run.report(false, path, has_meta.error());
  if (good.size() < whole.size() && *has_meta) {
    if (Result<Done> done = mark_loss(files); !done) return run.report(false, path, done.error());
  }
  return put_in_place(run, files, name, path, good,
                      headed ? "the head is rebuilt; the file has" : "cut to");
}

std::string_view advice_of(const JournalVerdict& v, bool head_can_be_made, bool has_number) {
  if (v.offset > 0) return "`--repair` cuts the file there, and the records behind it are lost";
  if (head_can_be_made) return "`--repair` rebuilds the head, and no record is lost";
  if (has_number)
    return "the head cannot be rebuilt, as no good record directly follows it; restore the file from a "
           "copy, "
           "or use `--repair`, which drops its records and those of all later journals";
  return "`--repair` cannot rebuild the head, as no good record directly follows it, and the file's name "
         "has "
         "no number";
}

// A journal that ends early. Only a crash of the machine leaves such a journal with another after it.
std::optional<std::string> torn_end(const Folder& folder, uint64_t number) {
  const std::vector<uint64_t>& journals = folder.chain.journals;
  const bool is_last = journals.empty() || number >= journals.back();
  if (!is_last && folder.lossless) return std::nullopt;
  const std::string what =
      "no good record follows: a crash cut it, and the server drops the rest when it starts";
  return is_last ? what : what + ", and renames the later journals";
}

bool check_bad_journal(Check& run, Files& files, const std::string& name, const std::string& path,
                       std::string_view bytes, const JournalVerdict& v, const std::string& what) {
  Result<Folder> folder = read_folder(files);
  if (!folder) return run.report(false, path, folder.error());
  const std::optional<uint64_t> number = number_of_journal(name);
  if (v.state == JournalState::kTorn && (number || v.offset > 0)) {
    if (const auto end = torn_end(*folder, number.value_or(UINT64_MAX)))
      return run.report(true, path, fmt::format("{}{}", what, *end));
  }
  const std::optional<std::string> headed = with_new_head(name, bytes, v);
  const bool can_be_repaired = v.offset > 0 || headed || number;
  const std::string follows =
      v.state == JournalState::kTorn
          ? "another journal follows, so the end of the process did not cause this; "
      : v.next_offset == 0 ? ""
                           : fmt::format("good records follow at byte {}; ", v.next_offset);
  run.report(false, path,
             fmt::format("{}{}{}", what, follows, advice_of(v, headed.has_value(), number.has_value())));
  return run.repair && can_be_repaired && repair_journal(run, files, name, path, bytes, headed);
}

bool check_journal(Check& run, Files& files, const std::string& name, const std::string& path) {
  Result<std::string> bytes = files.read(name);
  if (!bytes) return run.report(false, path, bytes.error());
  JournalScanner scanner(*bytes);
  uint64_t frames = 0;
  while (scanner.next()) ++frames;
  const JournalVerdict& v = scanner.verdict();
  if (v.state == JournalState::kNewer) {
    return run.report(
        false, path, fmt::format("written by a newer version of Holdfast (journal version {})", v.version));
  }
  const std::optional<uint64_t> number = number_of_journal(name);
  if (number && scanner.number() != 0) {
    run.journals[*number] = {scanner.first_sequence(), scanner.next_sequence()};
    if (scanner.number() != *number)
      return run.report(false, path, fmt::format("its head is that of journal {}", scanner.number()));
  }
  if (v.state == JournalState::kClean) {
    return run.report(true, path,
                      fmt::format("journal {}, with {} records from sequence {} on", scanner.number(),
                                  frames, scanner.first_sequence()));
  }
  return check_bad_journal(
      run, files, name, path, *bytes, v,
      fmt::format("{} records are good; at byte {} of {}: {}; ", frames, v.offset, bytes->size(), v.why));
}

// Returns the sequence that follows the last frame of the folder; 0 if its journals cannot be read.
uint64_t next_sequence_of(Files& files) {
  Result<std::vector<uint64_t>> journals = list_journals(files);
  if (!journals) return 0;
  for (; !journals->empty(); journals->pop_back()) {
    Result<std::string> bytes = files.read(journal_name(journals->back()));
    if (!bytes) return 0;
    JournalScanner scanner(*bytes);
    while (scanner.next()) continue;
    if (scanner.verdict().state == JournalState::kNewer) return 0;
    if (scanner.number() != 0) return scanner.next_sequence();
  }
  return 1;
}

bool accept_loss(Check& run, Files& files, const std::string& path, std::string_view what) {
  if (Result<Done> done = mark_loss(files); !done) return run.report(false, path, done.error());
  return run.report(true, path, fmt::format("{}; {}", what, kWaits));
}

bool check_meta(Check& run, Files& files, const std::string& name, const std::string& path) {
  Result<std::string> text = files.read(name);
  if (!text) return run.report(false, path, text.error());
  Meta meta;
  if (const std::string wrong = parse_meta(*text, meta); !wrong.empty()) {
    const bool can_be_repaired = name == "meta" && !is_newer_meta(*text);
    run.report(false, path, can_be_repaired ? wrong + "; `--repair` rebuilds it" : wrong);
    return run.repair && can_be_repaired &&
           accept_loss(run, files, path, "rebuilt; the original is kept as meta.damaged");
  }
  const uint64_t next = next_sequence_of(files);
  if (name == "meta" && next != 0 && next < meta.journal_sequence) {
    run.report(
        false, path,
        fmt::format(
            "the last stop left the journal at record {}, and it ends before record {}: {} records are "
            "missing; put the journals back, or use `--repair` to start without them",
            meta.journal_sequence, next, meta.journal_sequence - next));
    return run.repair && accept_loss(run, files, path, "the server will start without them");
  }
  return run.report(true, path,
                    fmt::format("tokens up to {}, {}", meta.token_reserve,
                                meta.clean ? "stopped cleanly" : "in use, or not stopped cleanly"));
}

// Detects the kind of the file by its first bytes; a journal or a meta file also by its name.
bool check_file(Check& run, Files& files, const std::string& name, const std::string& path) {
  auto file = files.open(name);
  if (!file) return run.report(false, path, file.error());
  char first[16] = {};
  Result<size_t> got = (*file)->read(0, first);
  if (!got) return run.report(false, path, got.error());
  const std::string_view begin(first, *got);
  if (begin.starts_with("HOLDFAST JOURNAL") || name.starts_with("journal.")) {
    return check_journal(run, files, name, path);
  }
  if (begin.starts_with("version ") || name == "meta") return check_meta(run, files, name, path);
  return check_snapshot(run, files, name, path);
}

// A journal is missing, or records at the end of one with another after it.
bool check_gap(Check& run, Files& files, const std::string& path, const Folder& folder, uint64_t journal,
               const std::string& what) {
  const bool missing = journal != 0;
  if (missing ? !folder.chain.refuses(folder.lossless) : !folder.lossless) {
    return run.report(
        true, path, what + ": a crash of the machine lost them, and the server renames the later journals");
  }
  run.report(false, path,
             what + "; restore the file, or use `--repair` to start without these and all later changes");
  if (!run.repair) return false;
  // The snapshot does not count without its journal: an empty one takes its place.
  const bool replaced = missing && folder.chain.needed;
  if (!accept_loss(run, files, path, "the server will start without them")) return false;
  if (!replaced) return true;
  Result<Done> done = files.replace(journal_name(journal), "");
  return done || run.report(false, path, done.error());
}

// The journals after the snapshot must be complete, as at a start of the server.
bool check_chain(Check& run, Files& files, const std::string& path) {
  Result<Folder> folder = read_folder(files);
  if (!folder) return run.report(false, path, folder.error());
  const JournalChain& chain = folder->chain;
  if (chain.missing != 0) {
    return check_gap(run, files, path, *folder, chain.missing,
                     fmt::format("{} is missing", journal_name(chain.missing)));
  }
  for (size_t i = 1; i < chain.journals.size(); ++i) {
    const auto before = run.journals.find(chain.journals[i - 1]);
    const auto after = run.journals.find(chain.journals[i]);
    if (before == run.journals.end() || after == run.journals.end()) continue;
    if (before->second.next == after->second.first) continue;
    return check_gap(
        run, files, path, *folder, 0,
        fmt::format("{} ends before record {}, and {} begins with record {}", journal_name(before->first),
                    before->second.next, journal_name(after->first), after->second.first));
  }
  return true;
}

// A start does not read journals older than the snapshot.
bool check_folder(Check& run, Files& files, const std::string& path) {
  bool good = true;
  bool any = false;
  Result<std::vector<std::string>> names = files.list();
  if (!names) return run.report(false, path, names.error());
  Result<Folder> folder = read_folder(files);
  if (!folder) return run.report(false, path, folder.error());
  for (const std::string& name : *names) {
    if (name == kRestoreName)
      good = run.report(false, path, "a restore did not end; run holdfast restore again, to this folder");
    const bool known =
        name == "meta" || name == "dump.rdb" || name == "dump.rdb.gz" ||
        (name.starts_with("journal.") && !name.ends_with(".damaged") && !name.ends_with(".tmp"));
    if (!known) continue;
    any = true;
    const std::string file_path = fmt::format("{}/{}", path, name);
    const std::optional<uint64_t> number = number_of_journal(name);
    if (number && folder->is_behind(*number)) {
      run.report(true, file_path, "older than the snapshot; the server removes it when it starts");
    } else {
      good = check_file(run, files, name, file_path) && good;
    }
  }
  if (!any) {
    return run.report(false, path,
                      "this folder has no files of Holdfast; give the folder of the server's --dir");
  }
  return check_chain(run, files, path) && good;
}

bool check_path(Check& run, const std::string& path) {
  struct stat facts {};
  if (stat(path.c_str(), &facts) != 0) return run.report(false, path, std::strerror(errno));
  const bool folder = run.folder = S_ISDIR(facts.st_mode);
  run.journals.clear();
  const size_t slash = path.find_last_of('/');
  const std::string in = folder ? path : slash == std::string::npos ? "." : path.substr(0, slash + 1);
  auto files = open_folder(in);
  if (!files) return run.report(false, path, files.error());
  if (run.repair) {  // a running server would write on behind the cut
    if (Result<Done> locked = (*files)->lock(); !locked) return run.report(false, path, locked.error());
  }
  if (folder) return check_folder(run, **files, path);
  return check_file(run, **files, slash == std::string::npos ? path : path.substr(slash + 1), path);
}

}  // namespace

int check_files(const std::vector<std::string>& paths, bool repair, bool json) {
  Check run;
  run.repair = repair;
  run.json = json;
  bool good = true;
  for (const std::string& path : paths) good = check_path(run, path) && good;
  if (json) print("{}\n", run.rows.dump(-1, ' ', false, Json::error_handler_t::replace));
  if (!flush()) return kNoOutput;
  return good ? 0 : 1;
}

}  // namespace holdfast
