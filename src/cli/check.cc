// What each kind of file is checked for. It knows nothing of clients, whose Result is another than the
// disk's.
#include "cli/check.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/status.h"
#include "core/journal_frame.h"
#include "core/meta.h"
#include "core/rdb_reader.h"
#include "io/files.h"
#include "io/gunzip.h"
#include "io/journal_writer.h"
#include "io/recovery.h"

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

// How files are checked, and where what is found is told: at once, or, for JSON, at the end.
struct Check {
  bool repair = false;
  bool json = false;
  Json rows = Json::array();

  bool tell(bool good, const std::string& path, std::string_view what) {
    if (json) {
      rows.push_back({{"path", path}, {"good", good}, {"what", what}});
    } else {
      fmt::print("{}: {}: {}\n", path, good ? "good" : "NOT good", what);
    }
    return good;
  }
};

bool check_snapshot(Check& run, Files& files, const std::string& name, const std::string& path) {
  auto file = Gunzip::open(files, name);
  if (!file) return run.tell(false, path, file.error());
  Counter counter;
  RdbReader reader(counter, true);
  while (true) {
    auto bytes = (*file)->next();
    if (!bytes) return run.tell(false, path, bytes.error());
    if (bytes->empty()) break;
    if (!reader.feed(*bytes)) return run.tell(false, path, reader.error());
  }
  if (!reader.finish()) return run.tell(false, path, reader.error());
  return run.tell(
      true, path,
      fmt::format("a snapshot of {} bytes unpacked, with {} strings and locks, {} hashes and locks with "
                  "several holders, {} keys of types that only Redis has",
                  reader.offset(), counter.strings, counter.hashes, counter.others));
}

// The bytes before the damage, in the place of the file; the file itself beside it.
bool cut(Check& run, Files& files, const std::string& name, const std::string& path,
         std::string_view good) {
  const std::string kept = name + ".damaged";
  Result<bool> there = files.exists(kept);
  if (!there || *there)
    return run.tell(false, path, fmt::format("{} is there already: move it away first", kept));
  if (Result<Done> done = files.rename(name, kept); !done) return run.tell(false, path, done.error());
  if (Result<Done> done = files.replace(name, good); !done) return run.tell(false, path, done.error());
  return run.tell(true, path, fmt::format("cut to {} bytes; what it was is in {}", good.size(), kept));
}

bool check_journal(Check& run, Files& files, const std::string& name, const std::string& path) {
  Result<std::string> bytes = files.read(name);
  if (!bytes) return run.tell(false, path, bytes.error());
  JournalScanner scanner(*bytes);
  uint64_t frames = 0;
  while (scanner.next()) ++frames;
  const JournalVerdict& v = scanner.verdict();
  if (v.state == JournalState::kClean) {
    return run.tell(true, path,
                    fmt::format("journal {}, with {} turns from sequence {} on", scanner.number(), frames,
                                scanner.first_sequence()));
  }
  if (v.state == JournalState::kNewer) {
    return run.tell(false, path, fmt::format("written by a newer version ({}) of Holdfast", v.version));
  }
  const bool torn = v.state == JournalState::kTorn;
  const std::string what = fmt::format(
      "{} turns are good; at byte {} of {}: {}; {}", frames, v.offset, bytes->size(), v.why,
      torn ? "nothing good follows: a crash cut it, and the server will drop the rest at its start"
           : fmt::format("good turns follow at byte {}: `--repair` would lose them", v.next_offset));
  if (!run.repair || v.offset == 0) return run.tell(torn && v.offset > 0, path, what);
  run.tell(false, path, what);
  return cut(run, files, name, path, std::string_view(*bytes).substr(0, v.offset));
}

bool check_meta(Check& run, Files& files, const std::string& name, const std::string& path) {
  Result<std::string> text = files.read(name);
  if (!text) return run.tell(false, path, text.error());
  Meta meta;
  if (const std::string wrong = parse_meta(*text, meta); !wrong.empty())
    return run.tell(false, path, wrong);
  return run.tell(true, path,
                  fmt::format("tokens up to {}, {}", meta.token_reserve,
                              meta.clean ? "stopped in order" : "in use, or not stopped in order"));
}

// By what the file begins with, whatever its name.
bool check_file(Check& run, Files& files, const std::string& name, const std::string& path) {
  auto file = files.open(name);
  if (!file) return run.tell(false, path, file.error());
  char first[16] = {};
  Result<size_t> got = (*file)->read(0, first);
  if (!got) return run.tell(false, path, got.error());
  const std::string_view begin(first, *got);
  if (begin.starts_with("HOLDFAST JOURNAL") || name.starts_with("journal.")) {
    return check_journal(run, files, name, path);
  }
  if (begin.starts_with("version ") || name == "meta") return check_meta(run, files, name, path);
  return check_snapshot(run, files, name, path);
}

// Journals of a folder have to follow each other; what the snapshot has made needless does no harm.
bool check_folder(Check& run, Files& files, const std::string& path) {
  bool good = true;
  Result<std::vector<std::string>> names = files.list();
  if (!names) return run.tell(false, path, names.error());
  for (const std::string& name : *names) {
    const bool known = name == "meta" || name == "dump.rdb" || name == "dump.rdb.gz" ||
                       (name.starts_with("journal.") && !name.ends_with(".damaged"));
    if (known) good = check_file(run, files, name, fmt::format("{}/{}", path, name)) && good;
  }
  Result<std::vector<uint64_t>> journals = list_journals(files);
  for (size_t i = 1; journals && i < journals->size(); ++i) {
    if ((*journals)[i] == (*journals)[i - 1] + 1) continue;
    good = run.tell(false, path, fmt::format("{} is missing", journal_name((*journals)[i - 1] + 1)));
  }
  return good;
}

bool check_path(Check& run, const std::string& path) {
  struct stat facts {};
  if (stat(path.c_str(), &facts) != 0) return run.tell(false, path, std::strerror(errno));
  const bool folder = S_ISDIR(facts.st_mode);
  const size_t slash = path.find_last_of('/');
  const std::string in = folder ? path : slash == std::string::npos ? "." : path.substr(0, slash + 1);
  auto files = open_folder(in);
  if (!files) return run.tell(false, path, files.error());
  if (run.repair) {  // a server that runs would write on behind the cut
    if (Result<Done> locked = (*files)->lock(); !locked) return run.tell(false, path, locked.error());
  }
  if (folder) return check_folder(run, **files, path);
  return check_file(run, **files, slash == std::string::npos ? path : path.substr(slash + 1), path);
}

}  // namespace

int check_files(const std::vector<std::string>& paths, bool repair, bool json) {
  Check run{repair, json};
  bool good = true;
  for (const std::string& path : paths) good = check_path(run, path) && good;
  if (json) fmt::print("{}\n", run.rows.dump(-1, ' ', false, Json::error_handler_t::replace));
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) return kNoOutput;
  return good ? 0 : 1;
}

}  // namespace holdfast
