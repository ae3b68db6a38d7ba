// What each kind of file is checked for.
#include "cli/check.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstring>
#include <memory>

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

bool tell(bool good, const std::string& path, std::string_view what) {
  fmt::print("{}: {}: {}\n", path, good ? "good" : "NOT good", what);
  return good;
}

bool check_snapshot(Files& files, const std::string& name, const std::string& path) {
  auto file = Gunzip::open(files, name);
  if (!file) return tell(false, path, file.error());
  Counter counter;
  RdbReader reader(counter, true);
  while (true) {
    auto bytes = (*file)->next();
    if (!bytes) return tell(false, path, bytes.error());
    if (bytes->empty()) break;
    if (!reader.feed(*bytes)) return tell(false, path, reader.error());
  }
  if (!reader.finish()) return tell(false, path, reader.error());
  return tell(
      true, path,
      fmt::format("a snapshot of {} bytes unpacked, with {} strings and locks, {} hashes and locks with "
                  "several holders, {} keys of types that only Redis has",
                  reader.offset(), counter.strings, counter.hashes, counter.others));
}

// The bytes before the damage, in the place of the file; the file itself beside it.
bool cut(Files& files, const std::string& name, const std::string& path, std::string_view good) {
  const std::string kept = name + ".damaged";
  Result<bool> there = files.exists(kept);
  if (!there || *there)
    return tell(false, path, fmt::format("{} is there already: move it away first", kept));
  if (Result<Done> done = files.rename(name, kept); !done) return tell(false, path, done.error());
  if (Result<Done> done = files.replace(name, good); !done) return tell(false, path, done.error());
  return tell(true, path, fmt::format("cut to {} bytes; what it was is in {}", good.size(), kept));
}

bool check_journal(Files& files, const std::string& name, const std::string& path, bool repair) {
  Result<std::string> bytes = files.read(name);
  if (!bytes) return tell(false, path, bytes.error());
  JournalScanner scanner(*bytes);
  uint64_t frames = 0;
  while (scanner.next()) ++frames;
  const JournalVerdict& v = scanner.verdict();
  if (v.state == JournalState::kClean) {
    return tell(true, path,
                fmt::format("journal {}, with {} turns from sequence {} on", scanner.number(), frames,
                            scanner.first_sequence()));
  }
  if (v.state == JournalState::kNewer) {
    return tell(false, path, fmt::format("written by a newer version ({}) of Holdfast", v.version));
  }
  const bool torn = v.state == JournalState::kTorn;
  const std::string what = fmt::format(
      "{} turns are good; at byte {} of {}: {}; {}", frames, v.offset, bytes->size(), v.why,
      torn ? "nothing good follows: a crash cut it, and the server will drop the rest at its start"
           : fmt::format("good turns follow at byte {}: `--repair` would lose them", v.next_offset));
  if (!repair || v.offset == 0) return tell(torn && v.offset > 0, path, what);
  tell(false, path, what);
  return cut(files, name, path, std::string_view(*bytes).substr(0, v.offset));
}

bool check_meta(Files& files, const std::string& name, const std::string& path) {
  Result<std::string> text = files.read(name);
  if (!text) return tell(false, path, text.error());
  Meta meta;
  if (const std::string wrong = parse_meta(*text, meta); !wrong.empty()) return tell(false, path, wrong);
  return tell(true, path,
              fmt::format("tokens up to {}, {}", meta.token_reserve,
                          meta.clean ? "stopped in order" : "in use, or not stopped in order"));
}

// By what the file begins with, whatever its name.
bool check_file(Files& files, const std::string& name, const std::string& path, bool repair) {
  auto file = files.open(name);
  if (!file) return tell(false, path, file.error());
  char first[16] = {};
  Result<size_t> got = (*file)->read(0, first);
  if (!got) return tell(false, path, got.error());
  const std::string_view begin(first, *got);
  if (begin.starts_with("HOLDFAST JOURNAL") || name.starts_with("journal.")) {
    return check_journal(files, name, path, repair);
  }
  if (begin.starts_with("version ") || name == "meta") return check_meta(files, name, path);
  return check_snapshot(files, name, path);
}

// Journals of a folder have to follow each other; what the snapshot has made needless does no harm.
bool check_folder(Files& files, const std::string& path, bool repair) {
  bool good = true;
  Result<std::vector<std::string>> names = files.list();
  if (!names) return tell(false, path, names.error());
  for (const std::string& name : *names) {
    const bool known = name == "meta" || name == "dump.rdb" || name == "dump.rdb.gz" ||
                       (name.starts_with("journal.") && !name.ends_with(".damaged"));
    if (known) good = check_file(files, name, fmt::format("{}/{}", path, name), repair) && good;
  }
  Result<std::vector<uint64_t>> journals = list_journals(files);
  for (size_t i = 1; journals && i < journals->size(); ++i) {
    if ((*journals)[i] == (*journals)[i - 1] + 1) continue;
    good = tell(false, path, fmt::format("{} is missing", journal_name((*journals)[i - 1] + 1)));
  }
  return good;
}

bool check_path(const std::string& path, bool repair) {
  struct stat facts {};
  if (stat(path.c_str(), &facts) != 0) return tell(false, path, std::strerror(errno));
  const bool folder = S_ISDIR(facts.st_mode);
  const size_t slash = path.find_last_of('/');
  const std::string in = folder ? path : slash == std::string::npos ? "." : path.substr(0, slash + 1);
  auto files = open_folder(in);
  if (!files) return tell(false, path, files.error());
  if (repair) {  // a server that runs would write on behind the cut
    if (Result<Done> locked = (*files)->lock(); !locked) return tell(false, path, locked.error());
  }
  if (folder) return check_folder(**files, path, repair);
  return check_file(**files, slash == std::string::npos ? path : path.substr(slash + 1), path, repair);
}

}  // namespace

int check_files(const std::vector<std::string>& paths, bool repair) {
  bool good = true;
  for (const std::string& path : paths) good = check_path(path, repair) && good;
  return good ? 0 : 1;
}

}  // namespace holdfast
