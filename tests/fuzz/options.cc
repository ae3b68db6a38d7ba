// The options of the server. Any command line and file are rejected with a reason, or give options that
// can be shown, set again, written to the file and read back.
#include "io/config/options.h"

#include <fstream>
#include <string>
#include <vector>

#include "files/temp_folder.h"
#include "fuzz/targets.h"
#include "io/config/options_table.h"

namespace holdfast::fuzz {
namespace {

const std::string& file_path() {
  static const TempFolder folder;
  static const std::string path = folder.file("conf");
  return path;
}

void write_file(std::string_view text) {
  std::ofstream file(file_path(), std::ios::binary | std::ios::trunc);
  file << text;
}

Result<Options> read(std::vector<std::string> words) {
  words.insert(words.begin(), "holdfast-server");
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  Result<Options> options = read_options(static_cast<int>(argv.size()), argv.data());
  if (!options) must(!options.error().empty(), "a refusal says why");
  return options;
}

void check_rows(const Options& options) {
  Options again = options;
  for (const Row& row : option_rows()) {
    const std::string text = shown(row, options);
    must(assign(row, text, again), "what is shown can be set");
    must(shown(row, again) == text, "and is shown again");
  }
  static_cast<void>(engine_config(options));
  static_cast<void>(log_level(options));
}

// Changes and rewrites options as CONFIG SET and CONFIG REWRITE do.
void change_and_rewrite(Options& options, Source& source) {
  ConfigChanges changes;
  const auto rows = option_rows();
  for (size_t n = source.below(4); n > 0; --n) {
    const size_t row = source.byte();
    const std::string name(row < rows.size() ? rows[row].name : source.text());
    changes.emplace_back(name, source.text());
  }
  change_options(options, changes);
  check_rows(options);
  if (!rewrite_config_file(options, {})) return;
  Result<Options> again = read({"--config", file_path()});
  must(static_cast<bool>(again), "a rewritten file is read");
  for (const Row& row : rows) must(shown(row, *again) == shown(row, options), row.name);
}

}  // namespace

void fuzz_options(std::string_view bytes) {
  Source source(bytes);
  std::vector<std::string> words;
  for (size_t n = source.below(4); n > 0; --n) {
    std::string word(source.text());
    words.push_back(word.substr(0, word.find('\0')));
  }
  const bool with_file = source.one_in(2);
  if (!with_file) {
    if (Result<Options> options = read(words); options && !options->answer) check_rows(*options);
    return;
  }
  const size_t size = source.byte() + 256U * source.below(4);
  write_file(source.take(size));
  words.insert(words.end(), {"--config", file_path()});
  Result<Options> options = read(words);
  if (!options || options->answer || options->config_file != file_path()) return;
  check_rows(*options);
  change_and_rewrite(*options, source);
}

}  // namespace holdfast::fuzz
