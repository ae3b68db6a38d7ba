// The checks for each kind of file. This file must not include the client's headers: their `Result` differs
// from that of the disk code.
#include "cli/check.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <charconv>
#include <cstdint>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/output.h"
#include "cli/status.h"
#include "core/base/types.h"
#include "core/codec/journal_frame.h"
#include "core/codec/meta.h"
#include "core/codec/rdb_reader.h"
#include "io/disk/gunzip.h"
#include "io/disk/journal_writer.h"
#include "io/disk/meta_keeper.h"
#include "io/disk/recovery.h"
#include "io/os/files.h"

namespace holdfast {
namespace {

class Counter : public RdbSink {
 public:
  uint64_t strings = 0;
  uint64_t hashes = 0;
  uint64_t others = 0;

 private:
  void string(uint64_t, std::string_view, std::string_view, int64_t) override { ++strings; }
  void begin_hash(uint64_t, std::string_view, int64_t, uint64_t) override { ++hashes; }
  void skipped(uint64_t, std::string_view, std::string_view) override { ++others; }
};

using Json = nlohmann::ordered_json;

// The mode of a check, and its findings: printed at once or, for JSON, collected until the end.
struct Check {
  bool repair = false;
  bool json = false;
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

bool check_snapshot(Check& run, Files& files, const std::string& name, const std::string& path) {
  auto file = Gunzip::open(files, name);
  if (!file) return run.report(false, path, file.error());
  Counter counter;
  RdbReader reader(counter, true);
  while (true) {
    auto bytes = (*file)->next();
    if (!bytes) return run.report(false, path, bytes.error());
    if (bytes->empty()) break;
    if (!reader.feed(*bytes)) return run.report(false, path, reader.error());
  }
  if (!reader.finish()) return run.report(false, path, reader.error());
  return run.report(
      true, path,
      fmt::format("a snapshot of {} bytes unpacked, with {} strings and locks, {} hashes and locks with "
                  "several holders, {} keys of unsupported types",
                  reader.offset(), counter.strings, counter.hashes, counter.others));
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

std::string_view advice_of(const JournalVerdict& v, bool head_can_be_made) {
  if (v.state == JournalState::kTorn)
    return "no good record follows: a crash cut it, and the server drops the rest when it starts";
  if (v.offset > 0) return "`--repair` cuts the file there, and the records behind it are lost";
  if (head_can_be_made) return "`--repair` rebuilds the head, and no record is lost";
  return "`--repair` cannot rebuild the head, as no good record directly follows it; restore the "
         "file from a copy, or move it and all later journals away to start without them";
}

// Before records are cut from a journal: after a stop that was not clean, the next start shall wait as long
// as lost holds may be in use. A start after a clean stop detects by itself that records are missing.
Result<Done> expect_loss(Files& files) {
  Result<std::optional<Meta>> found = MetaKeeper(files).read();
  if (!found) return Failure{found.error()};
  if (!*found || (*found)->clean) return Done{};  // no meta: the journal is a copy
  Meta meta = **found;
  meta.boot_id.clear();
  return files.replace("meta", format_meta(meta));
}

// Writes the new head, if there is one, and cuts the file at the first damage.
bool repair_journal(Check& run, Files& files, const std::string& name, const std::string& path,
                    std::string_view bytes, const std::optional<std::string>& headed) {
  const std::string_view whole = headed ? std::string_view(*headed) : bytes;
  JournalScanner scanner(whole);
  while (scanner.next()) continue;
  const std::string_view good = whole.substr(0, scanner.verdict().offset);
  if (good.size() < whole.size()) {
    if (Result<Done> done = expect_loss(files); !done) return run.report(false, path, done.error());
  }
  return put_in_place(run, files, name, path, good,
                      headed ? "the head is rebuilt; the file has" : "cut to");
}

bool check_journal(Check& run, Files& files, const std::string& name, const std::string& path) {
  Result<std::string> bytes = files.read(name);
  if (!bytes) return run.report(false, path, bytes.error());
  JournalScanner scanner(*bytes);
  uint64_t frames = 0;
  while (scanner.next()) ++frames;
  const JournalVerdict& v = scanner.verdict();
  if (v.state == JournalState::kClean) {
    return run.report(true, path,
                      fmt::format("journal {}, with {} records from sequence {} on", scanner.number(),
                                  frames, scanner.first_sequence()));
  }
  if (v.state == JournalState::kNewer) {
    return run.report(false, path, fmt::format("written by a newer version ({}) of Holdfast", v.version));
  }
  const std::optional<std::string> headed = with_new_head(name, *bytes, v);
  const bool torn = v.state == JournalState::kTorn;
  const std::string follows =
      torn || v.next_offset == 0 ? "" : fmt::format("good records follow at byte {}; ", v.next_offset);
  const std::string what = fmt::format("{} records are good; at byte {} of {}: {}; {}{}", frames, v.offset,
                                       bytes->size(), v.why, follows, advice_of(v, headed.has_value()));
  const bool can_be_repaired = v.offset > 0 || headed;
  if (!run.repair || !can_be_repaired) return run.report(torn && v.offset > 0, path, what);
  run.report(false, path, what);
  return repair_journal(run, files, name, path, *bytes, headed);
}

// Returns the sequence that follows the last frame of the folder; 0 if its journals cannot be read.
uint64_t next_sequence_of(Files& files) {
  Result<std::vector<uint64_t>> journals = list_journals(files);
  if (!journals) return 0;
  if (journals->empty()) return 1;
  Result<std::string> bytes = files.read(journal_name(journals->back()));
  if (!bytes) return 0;
  JournalScanner scanner(*bytes);
  while (scanner.next()) continue;
  return scanner.next_sequence();
}

// Changes the meta file so that the next start accepts the journals as they are. The server then waits as
// long as lost holds may be in use.
bool accept_loss(Check& run, Files& files, const std::string& name, const std::string& path, Meta meta) {
  meta.clean = false;
  meta.journal_sequence = 0;
  meta.boot_id.clear();
  meta.horizon_ms = meta.horizon_boot_ms = kNever.count;
  if (Result<Done> done = files.replace(name, format_meta(meta)); !done)
    return run.report(false, path, done.error());
  return run.report(true, path,
                    "the server will start without them, and grant no locks during its recovery-wait");
}

bool check_meta(Check& run, Files& files, const std::string& name, const std::string& path) {
  Result<std::string> text = files.read(name);
  if (!text) return run.report(false, path, text.error());
  Meta meta;
  if (const std::string wrong = parse_meta(*text, meta); !wrong.empty())
    return run.report(false, path, wrong);
  const uint64_t next = next_sequence_of(files);
  if (name == "meta" && next != 0 && next < meta.journal_sequence) {
    run.report(
        false, path,
        fmt::format(
            "the last stop left the journal at record {}, and it ends before record {}: {} records are "
            "missing; put the journals back, or use `--repair` to start without them",
            meta.journal_sequence, next, meta.journal_sequence - next));
    return run.repair && accept_loss(run, files, name, path, meta);
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

// The numbers of a folder's journals must be consecutive. Journals older than the snapshot do no harm.
bool check_folder(Check& run, Files& files, const std::string& path) {
  bool good = true;
  bool any = false;
  Result<std::vector<std::string>> names = files.list();
  if (!names) return run.report(false, path, names.error());
  for (const std::string& name : *names) {
    const bool known = name == "meta" || name == "dump.rdb" || name == "dump.rdb.gz" ||
                       (name.starts_with("journal.") && !name.ends_with(".damaged"));
    if (!known) continue;
    any = true;
    good = check_file(run, files, name, fmt::format("{}/{}", path, name)) && good;
  }
  if (!any) {
    return run.report(false, path,
                      "this folder has no files of Holdfast; give the folder of the server's --dir");
  }
  Result<std::vector<uint64_t>> journals = list_journals(files);
  for (size_t i = 1; journals && i < journals->size(); ++i) {
    if ((*journals)[i] == (*journals)[i - 1] + 1) continue;
    good = run.report(false, path, fmt::format("{} is missing", journal_name((*journals)[i - 1] + 1)));
  }
  return good;
}

bool check_path(Check& run, const std::string& path) {
  struct stat facts {};
  if (stat(path.c_str(), &facts) != 0) return run.report(false, path, std::strerror(errno));
  const bool folder = S_ISDIR(facts.st_mode);
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
  Check run{repair, json};
  bool good = true;
  for (const std::string& path : paths) good = check_path(run, path) && good;
  if (json) print("{}\n", run.rows.dump(-1, ' ', false, Json::error_handler_t::replace));
  if (!flush()) return kNoOutput;
  return good ? 0 : 1;
}

}  // namespace holdfast
