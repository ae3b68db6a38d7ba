#include "client/transport/redis_script.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <utility>

#include "core/base/hash_slot.h"
#include "core/base/parse.h"
#include "core/base/sha1.h"
#include "core/codec/hold_codec.h"

namespace holdfast::client {
namespace {

using TranslationKind = Translation::Kind;

constexpr const char* kUnknownLease =
    "NOLEASE no such lease of this client; on Redis only the client that granted a lease knows its keys";

constexpr int64_t kMaxListed = 1000;

struct Script {
  std::string text;
  std::string digest;
};

std::map<std::string, Script> join_scripts() {
  std::map<std::string, Script> all;
  for (const char* name : {"lock", "renew", "unlock", "fence", "locks_info", "locks_list", "break",
                           "revoke", "lease_grant", "lease_confirm", "lease_cancel", "lease_renew"}) {
    std::string text(script_file("common"));
    if (std::string_view(name).starts_with("lease_")) text += script_file("lease_common");
    text += script_file(name);
    all[name] = {text, sha1_hex(text)};
  }
  return all;
}

const Script& script_of(const std::string& name) {
  static const std::map<std::string, Script> kScripts = join_scripts();
  return kScripts.at(name);
}

std::string upper(std::string word) {
  for (char& c : word) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return word;
}

Argv eval_with(const char* command, const std::string& script, const ScriptCall& call) {
  Argv argv{command, script, std::to_string(call.keys.size())};
  argv.insert(argv.end(), call.keys.begin(), call.keys.end());
  argv.insert(argv.end(), call.argv.begin(), call.argv.end());
  return argv;
}

Translation refused(std::string why) { return {TranslationKind::kRefused, {}, std::move(why)}; }

Translation wrong_arity(const std::string& command) {
  return refused("ERR wrong number of arguments for '" + command + "' command");
}

// Translates a request on one key. `argv` has the key at `key_at`, and the script's arguments after it.
Translation on_key(const char* script, const Argv& argv, size_t key_at, const std::string& command) {
  if (argv.size() <= key_at) return wrong_arity(command);
  const std::string& key = argv[key_at];
  const auto rest = argv.begin() + static_cast<ptrdiff_t>(key_at) + 1;
  return {TranslationKind::kScript, {script, {key, token_key(key)}, {rest, argv.end()}}, {}};
}

// Translates LEASE GRANT id ttl key value [key value ...].
Translation grant_of(const Argv& argv) {
  if (argv.size() < 6 || argv.size() % 2 != 0) return wrong_arity("lease|grant");
  ScriptCall call{"lease_grant", {lease_key(argv[4], argv[2])}, {argv[2], argv[3]}};
  for (size_t i = 4; i < argv.size(); i += 2) {
    call.keys.insert(call.keys.end(), {argv[i], token_key(argv[i])});
    call.argv.push_back(argv[i + 1]);
  }
  return {TranslationKind::kScript, std::move(call), {}};
}

Translation lease_of(const Argv& argv, const LeaseKeys& lease_keys) {
  const std::string what = argv.size() > 1 ? upper(argv[1]) : "";
  if (what == "GRANT") return grant_of(argv);
  constexpr std::array<std::pair<std::string_view, const char*>, 3> kScripts{
      {{"CONFIRM", "lease_confirm"}, {"CANCEL", "lease_cancel"}, {"RENEW", "lease_renew"}}};
  for (const auto& [name, script] : kScripts) {
    if (name != what) continue;
    if (argv.size() < 3) return wrong_arity("lease");
    const Argv* keys = lease_keys(argv[2]);
    if (keys == nullptr) return refused(kUnknownLease);
    return {TranslationKind::kScript, {script, *keys, {argv.begin() + 2, argv.end()}}, {}};
  }
  return refused("ERR LEASE " + what + " is not possible on Redis: use GRANT, CONFIRM, RENEW or CANCEL");
}

// Translates LOCKS LIST cursor [MATCH pattern] [COUNT n]. SCAN has the same options, with the same errors.
Translation list_of(const Argv& argv) {
  if (argv.size() < 3) return wrong_arity("locks|list");
  const auto from = read_list_cursor(argv[2]);
  if (!from) return refused("ERR invalid cursor");
  Argv options(argv.begin() + 3, argv.end());
  for (size_t i = 0; i < options.size(); i += 2) {
    const std::string word = upper(options[i]);
    if ((word != "MATCH" && word != "COUNT") || i + 1 == options.size()) return refused("ERR syntax error");
    // COUNT is a hint, as for SCAN. It is limited because each key found costs a request.
    if (word == "COUNT" && parse_int_in(options[i + 1], kMaxListed, INT64_MAX))
      options[i + 1] = std::to_string(kMaxListed);
  }
  return {TranslationKind::kList, {"locks_list", {}, std::move(options)}, {}, *from};
}

Translation locks_of(const Argv& argv) {
  const std::string what = argv.size() > 1 ? upper(argv[1]) : "";
  if (what == "INFO") return on_key("locks_info", argv, 2, "locks|info");
  if (what == "BREAK") return on_key("break", argv, 2, "locks|break");
  if (what == "REVOKE") return on_key("revoke", argv, 2, "locks|revoke");
  if (what == "LIST") return list_of(argv);
  return refused("ERR LOCKS " + what + " is not possible on Redis: there is no script for it");
}

}  // namespace

std::string lease_key(std::string_view first_key, std::string_view id) {
  return std::string("holdfast:lease:{").append(hash_tag(first_key)).append("}").append(id);
}

// Returns "slot:scan:node". The node is last, because its text has colons, too.
std::string text_of(const ListCursor& cursor) {
  return std::to_string(cursor.slot) + ":" + cursor.scan + ":" + cursor.node;
}

std::optional<ListCursor> read_list_cursor(std::string_view text) {
  if (text == "0") return ListCursor{};
  const size_t first = text.find(':');
  const size_t second = first == std::string_view::npos ? first : text.find(':', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  const auto slot = parse_int_in(text.substr(0, first), 0, kHashSlots - 1);
  if (!slot) return std::nullopt;
  return ListCursor{static_cast<int>(*slot), std::string(text.substr(second + 1)),
                    std::string(text.substr(first + 1, second - first - 1))};
}

Argv evalsha_of(const ScriptCall& call) {
  return eval_with("EVALSHA", script_of(call.script).digest, call);
}

Argv eval_of(const ScriptCall& call) { return eval_with("EVAL", script_of(call.script).text, call); }

ScriptCall unlock_call(const std::string& key, const std::string& owner) {
  return {"unlock", {key, token_key(key)}, {owner}};
}

Translation translate(const Argv& argv, const LeaseKeys& lease_keys) {
  const std::string command = argv.empty() ? "" : upper(argv[0]);
  if (command == "LOCK") return on_key("lock", argv, 1, "lock");
  if (command == "RENEW") return on_key("renew", argv, 1, "renew");
  if (command == "UNLOCK") return on_key("unlock", argv, 1, "unlock");
  if (command == "FENCE") return on_key("fence", argv, 1, "fence");
  if (command == "LOCKS") return locks_of(argv);
  if (command == "LEASE") return lease_of(argv, lease_keys);
  return {};
}

std::optional<WaitingLock> waiting_lock(const Argv& argv) {
  if (argv.size() < 4 || upper(argv[0]) != "LOCK") return std::nullopt;
  Argv attempt(argv.begin(), argv.begin() + 4), mode;
  std::optional<int64_t> wait;
  for (size_t i = 4; i < argv.size(); ++i) {
    const std::string word = upper(argv[i]);
    if (word == "WAIT" && i + 1 < argv.size()) {
      wait = parse_int_in(argv[++i], 0, INT64_MAX);
    } else if ((word == "TOKEN" || word == "NOTE") && i + 1 < argv.size()) {
      attempt.insert(attempt.end(), {word, argv[++i]});
    } else if (word != "SESSION") {
      attempt.push_back(argv[i]);
      mode.push_back(word);
    }
  }
  if (!wait) return std::nullopt;
  attempt.emplace_back("LEFT");
  return WaitingLock{on_key("lock", attempt, 1, "lock").call, argv[1], argv[2], std::move(mode), {*wait}};
}

}  // namespace holdfast::client
