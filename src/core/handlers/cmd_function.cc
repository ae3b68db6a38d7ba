// FUNCTION: libraries of functions, as in Redis 7.0. FCALL is in cmd_script.cc.
#include <bit>
#include <string>
#include <vector>

#include "core/base/glob.h"
#include "core/base/parse.h"
#include "core/codec/rdb_reader.h"
#include "core/codec/rdb_writer.h"
#include "core/command/handlers.h"
#include "core/events/record_changes.h"
#include "core/handlers/script_access.h"
#include "core/persist/payload.h"
#include "core/script/script.h"
#include "core/state/library_store.h"
#include "core/state/request.h"

namespace holdfast {

namespace {

std::optional<std::string> read_name(Request& r, std::string_view code) {
  std::string_view body;
  std::string error;
  auto name = read_library_name(code, body, error);
  if (!name) r.reply.error("ERR " + error);
  return name;
}

struct Listing {
  std::optional<std::string_view> pattern;
  bool with_code = false;
};

// Writes an error and returns nullopt if an argument is unknown.
std::optional<Listing> read_listing(Request& r) {
  Listing listing;
  for (size_t i = 2; i < r.argc(); ++i) {
    if (!listing.with_code && equals_ignore_case(r.arg(i), "WITHCODE")) {
      listing.with_code = true;
    } else if (!listing.pattern && equals_ignore_case(r.arg(i), "LIBRARYNAME")) {
      if (++i == r.argc()) return r.reply.error("ERR library name argument was not given"), std::nullopt;
      listing.pattern = r.arg(i);
    } else {
      return r.reply.error("ERR Unknown argument " + std::string(r.arg(i))), std::nullopt;
    }
  }
  return listing;
}

void write_function(Reply& reply, const LibraryFunction& f) {
  reply.map(3);
  reply.bulk("name");
  reply.bulk(f.name);
  reply.bulk("description");
  f.description ? reply.bulk(*f.description) : reply.null();
  reply.bulk("flags");
  reply.set(static_cast<size_t>(std::popcount(f.flags)));
  for (size_t i = 0; i < kFunctionFlags.size(); ++i) {
    if (f.has(i)) reply.simple(kFunctionFlags[i]);
  }
}

void write_library(Reply& reply, const Library& library, bool with_code) {
  reply.map(with_code ? 4 : 3);
  reply.bulk("library_name");
  reply.bulk(library.name);
  reply.bulk("engine");
  reply.bulk("LUA");
  reply.bulk("functions");
  reply.array(library.functions.size());
  for (const LibraryFunction& f : library.functions) write_function(reply, f);
  if (!with_code) return;
  reply.bulk("library_code");
  reply.bulk(library.code);
}

void write_running(Request& r) {
  const ScriptHost& host = r.s().scripts;
  r.reply.bulk("running_script");
  if (host.running_function() == nullptr) return r.reply.null();
  r.reply.map(3);
  r.reply.bulk("name");
  r.reply.bulk(host.running_function()->name);
  r.reply.bulk("command");
  r.reply.array(host.running_request()->argc());
  for (const std::string_view arg : host.running_request()->argv) r.reply.bulk(arg);
  r.reply.bulk("duration_ms");
  r.reply.integer(host.run_us() / 1000);
}

// The libraries of a payload.
class Codes : public RdbSink {
 public:
  std::vector<std::string> codes;
  bool good = true;  // nothing else is there

 private:
  void aux(std::string_view, std::string_view) override { good = false; }
  void string(uint64_t, std::string_view, std::string_view, int64_t) override { good = false; }
  void begin_collection(RdbCollection, uint64_t, std::string_view, int64_t) override { good = false; }
  void library(std::string_view code) override { codes.emplace_back(code); }
};

// Reads the libraries of a payload. Writes an error and returns nullopt if there is something else.
std::optional<std::vector<std::string>> read_codes(Request& r, std::string_view payload) {
  const auto bytes = open_payload(payload);
  if (!bytes) return r.reply.error("ERR DUMP payload version or checksum are wrong"), std::nullopt;
  Codes sink;
  RdbReader reader(sink, false);
  if (reader.feed(rdb_head()) && reader.feed(*bytes) && reader.feed(rdb_tail()) && reader.finish() &&
      sink.good) {
    return std::move(sink.codes);
  }
  return r.reply.error("ERR given type is not a function"), std::nullopt;
}

enum class Policy : uint8_t { kFlush, kAppend, kReplace };

std::optional<Policy> read_policy(Request& r) {
  if (r.argc() > 4) return reply_subcommand_syntax(r), std::nullopt;
  if (r.argc() == 3 || equals_ignore_case(r.arg(3), "APPEND")) return Policy::kAppend;
  if (equals_ignore_case(r.arg(3), "REPLACE")) return Policy::kReplace;
  if (equals_ignore_case(r.arg(3), "FLUSH")) return Policy::kFlush;
  r.reply.error("ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.");
  return std::nullopt;
}

}  // namespace

void cmd_function_load(Request& r) {
  const size_t last = r.argc() - 1;
  bool replace = false;
  for (size_t i = 2; i < last; ++i) {
    if (!equals_ignore_case(r.arg(i), "REPLACE")) {
      return r.reply.error("ERR Unknown option given: " + std::string(r.arg(i)));
    }
    replace = true;
  }
  const auto name = read_name(r, r.arg(last));
  if (!name) return;
  ScriptHost& host = r.s().scripts;
  if (!replace && host.libraries().has(*name)) {
    return r.reply.error("ERR Library '" + *name + "' already exists");
  }
  adopt_script_limits(r);
  const std::string code(r.arg(last));
  if (const std::string error = host.load_libraries({&code, 1}, true, false); !error.empty()) {
    return r.reply.error("ERR " + error);
  }
  journal_library(r.ctx, code);
  r.reply.bulk(*name);
}

void cmd_function_delete(Request& r) {
  if (!r.s().scripts.remove_library(r.arg(2))) return r.reply.error("ERR Library not found");
  journal_library_end(r.ctx, r.arg(2));
  r.reply.ok();
}

void cmd_function_flush(Request& r) {
  if (r.argc() > 3) return reply_subcommand_syntax(r);
  if (r.argc() == 3 && !equals_ignore_case(r.arg(2), "SYNC") && !equals_ignore_case(r.arg(2), "ASYNC")) {
    return r.reply.error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option");
  }
  static_cast<void>(r.s().scripts.load_libraries({}, false, true));
  journal_library_end(r.ctx, {});
  r.reply.ok();
}

void cmd_function_list(Request& r) {
  const auto listing = read_listing(r);
  if (!listing) return;
  std::vector<const Library*> found;
  GlobSteps steps{.allowed = kNameSteps};
  for (const auto& [name, library] : r.s().scripts.libraries().all()) {
    if (!listing->pattern || glob_match(*listing->pattern, name, steps, true)) {
      found.push_back(library.get());
    }
  }
  r.reply.array(found.size());
  for (const Library* library : found) write_library(r.reply, *library, listing->with_code);
}

void cmd_function_stats(Request& r) {
  const ScriptHost& host = r.s().scripts;
  if (host.running() && host.running_function() == nullptr) return r.reply.error(kBusyScript);
  r.reply.map(2);
  write_running(r);
  r.reply.bulk("engines");
  r.reply.map(1);
  r.reply.bulk("LUA");
  r.reply.map(2);
  r.reply.bulk("libraries_count");
  r.reply.integer(static_cast<int64_t>(host.libraries().all().size()));
  r.reply.bulk("functions_count");
  r.reply.integer(static_cast<int64_t>(host.libraries().functions()));
}

void cmd_function_dump(Request& r) {
  std::string payload;
  RdbWriter rdb(payload);
  for (const std::string_view code : library_codes(r.s())) rdb.library(code);
  seal_payload(payload);
  r.reply.bulk(payload);
}

void cmd_function_restore(Request& r) {
  const auto policy = read_policy(r);
  const auto codes = policy ? read_codes(r, r.arg(2)) : std::nullopt;
  if (!codes) return;
  adopt_script_limits(r);
  const std::string error =
      r.s().scripts.load_libraries(*codes, *policy == Policy::kReplace, *policy == Policy::kFlush);
  if (!error.empty()) return r.reply.error("ERR " + error);
  if (*policy == Policy::kFlush) journal_library_end(r.ctx, {});
  for (const std::string& code : *codes) journal_library(r.ctx, code);
  r.reply.ok();
}

void cmd_function_kill(Request& r) { kill_script(r, true); }

void cmd_function_help(Request& r) {
  static constexpr std::string_view kLines[] = {
      "LOAD [REPLACE] <FUNCTION CODE>",
      "    Create a new library with the given library name and code.",
      "DELETE <LIBRARY NAME>",
      "    Delete the given library.",
      "LIST [LIBRARYNAME PATTERN] [WITHCODE]",
      "    Return the libraries with their functions, and with their code if WITHCODE is given.",
      "STATS",
      "    Return the running function, with its command and its run time in ms, and the engines.",
      "KILL",
      "    Kill the current running function.",
      "FLUSH [ASYNC|SYNC]",
      "    Delete all the libraries. Both modes do the same here.",
      "DUMP",
      "    Return a serialized payload representing the current libraries.",
      "RESTORE <PAYLOAD> [FLUSH|APPEND|REPLACE]",
      "    Restore the libraries of the payload. FLUSH deletes all others first, APPEND (default) fails if",
      "    one of them exists, REPLACE replaces it.",
  };
  reply_help(r, kLines);
}

}  // namespace holdfast
