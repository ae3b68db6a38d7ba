// The JSON paths. A path reads its parameters, runs its command, and names the fields of the reply.
#include "io/http/api.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/command/acl_rules.h"
#include "core/engine/visitors.h"

namespace holdfast {
namespace {

constexpr uint64_t kMaxCount = 1000;
constexpr JsonName kLockNames[] = {{"ttl", "ttl_ms"},         {"held", "held_ms"},
                                   {"renewed", "renewed_ms"}, {"waited", "waited_ms"},
                                   {"delay", "delay_ms"},     {"left", "timeout_ms"}};
constexpr JsonName kTopNames[] = {{"wait", "wait_ms"}, {"max-wait", "max_wait_ms"}};

// One request below /api/v1/.
struct Call {
  HttpContext& ctx;
  const Url& url;
  const HttpRequest& request;
  const Visitor& visitor;
  const AclUser& user;

  EngineReply run(size_t db, const std::vector<std::string_view>& argv) {
    return call_engine(ctx, user, visitor, db, argv);
  }
};

HttpAnswer json_answer(std::string body) {
  HttpAnswer answer;
  answer.type = kJsonType;
  answer.body = std::move(body);
  return answer;
}

// A parameter of the query that is a number.
struct NumberParameter {
  std::string_view name;
  uint64_t otherwise, min, max;
};
constexpr NumberParameter kCount{"count", 50, 1, kMaxCount};
constexpr NumberParameter kDb{"db", 0, 0, kDatabases - 1};
constexpr NumberParameter kCursor{"cursor", 0, 0, std::numeric_limits<uint64_t>::max()};
constexpr NumberParameter kSince{"since", 0, 0, std::numeric_limits<int64_t>::max() / 1000};  // as HISTORY

HttpAnswer bad_parameter(const NumberParameter& p) {
  return json_refusal(400, fmt::format("{} must be an integer from {} to {}", p.name, p.min, p.max));
}

// Returns nullopt if the number is malformed or out of range.
std::optional<uint64_t> number_of(const Url& url, const NumberParameter& p) {
  const std::string_view text = url.value(p.name, "");
  if (text.empty()) return p.otherwise;
  uint64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n < p.min || n > p.max)
    return std::nullopt;
  return n;
}
std::optional<uint64_t> db_of(const Url& url) { return number_of(url, kDb); }

// {"name":reply}, with "truncated":true if the end of a long reply is missing.
HttpAnswer wrapped(const EngineReply& reply, std::string_view name, std::span<const JsonName> names) {
  if (reply.status != 200) return json_refusal(reply.status, reply.why);
  std::string body = "{";
  append_json_text(body, name);
  body += ':';
  bool cut = false;
  if (append_json(body, reply.resp, names, cut) == 0) return json_refusal(503, "the reply is too long");
  body += cut ? ",\"truncated\":true}" : "}";
  return json_answer(std::move(body));
}

// Fewer rows, until the page fits: a page without its last rows would lose them.
HttpAnswer answer_list(Call& call) {
  const auto cursor = number_of(call.url, kCursor);
  const auto count = number_of(call.url, kCount);
  const auto db = db_of(call.url);
  if (!cursor || !count || !db) return bad_parameter(!cursor ? kCursor : !count ? kCount : kDb);
  const std::string from = std::to_string(*cursor);
  const std::string_view match = call.url.value("match", "*");
  for (uint64_t rows = *count; rows > 0; rows /= 8) {
    const std::string most = std::to_string(rows);
    const EngineReply reply = call.run(*db, {"LOCKS", "LIST", from, "MATCH", match, "COUNT", most});
    if (reply.status != 200) return json_refusal(reply.status, reply.why);
    if (reply.cut) continue;
    std::string body = "{\"cursor\":";
    bool cut = false;
    const std::string_view page = std::string_view(reply.resp).substr(4);  // behind "*2\r\n"
    const size_t used = append_json(body, page, {}, cut);
    body += ",\"locks\":";
    append_json(body, page.substr(used), kLockNames, cut);
    return json_answer(body + '}');
  }
  return json_refusal(503, "the next lock of this page is too large for a reply");
}

HttpAnswer answer_lock(Call& call, std::string_view key) {
  const auto db = db_of(call.url);
  if (!db) return bad_parameter(kDb);
  const EngineReply reply = call.run(*db, {"LOCKS", "INFO", key});
  if (reply.status != 200) return json_refusal(reply.status, reply.why);
  std::string body;
  bool cut = false;
  if (append_json(body, reply.resp, kLockNames, cut) == 0)
    return json_refusal(503, "the reply is too long");
  if (body == "null") return json_refusal(404, "this key is not locked");
  if (cut) body.replace(body.size() - 1, 1, ",\"truncated\":true}");
  return json_answer(std::move(body));
}

HttpAnswer answer_history(Call& call) {
  const auto count = number_of(call.url, kCount);
  const auto since = number_of(call.url, kSince);
  const auto db = db_of(call.url);
  if (!count || !since || !db) return bad_parameter(!count ? kCount : !since ? kSince : kDb);
  const std::string most = std::to_string(*count);
  const std::string from = std::to_string(*since);
  std::vector<std::string_view> argv = {"LOCKS", "HISTORY"};
  if (call.url.query.contains("key")) argv.push_back(call.url.value("key", ""));
  argv.insert(argv.end(), {"COUNT", most});
  if (*since > 0) argv.insert(argv.end(), {"SINCE", from});
  return wrapped(call.run(*db, argv), "events", {});
}

HttpAnswer answer_top(Call& call, std::string_view by) {
  const auto count = number_of(call.url, kCount);
  if (!count) return bad_parameter(kCount);
  if (by != "waiters" && by != "wait" && by != "holds")
    return json_refusal(400, "by must be waiters, wait or holds");
  const std::string most = std::to_string(*count);
  return wrapped(call.run(0, {"LOCKS", "TOP", "BY", by, "COUNT", most}), "keys", kTopNames);
}

HttpAnswer answer_info(Call& call, const ShellFacts& facts) {
  return json_answer(info_of(call.user, common_info(call.ctx.engine, call.ctx.now, facts.server)));
}

HttpAnswer answer_change(Call& call, std::string_view key, std::string_view verb) {
  const auto db = db_of(call.url);
  if (!db) return bad_parameter(kDb);
  const bool breaks = verb == "break";
  HttpAnswer answer =
      wrapped(call.run(*db, {"LOCKS", breaks ? "BREAK" : "REVOKE", key}), breaks ? "broken" : "asked", {});
  answer.waits_for_disk = answer.status == 200;
  return answer;
}

// What a path stands for.
enum class Path { kUnknown, kInfo, kLocks, kLock, kWaiters, kHistory, kTop, kEvents, kChange };

Path path_of(const Url& url) {
  const std::vector<std::string>& p = url.parts;  // "api", "v1", then these
  if (p.size() == 5 && p[2] == "locks" && (p[4] == "break" || p[4] == "revoke")) return Path::kChange;
  if (p.size() == 4 && p[2] == "locks") return Path::kLock;
  if (p.size() != 3) return Path::kUnknown;
  if (p[2] == "info") return Path::kInfo;
  if (p[2] == "locks") return Path::kLocks;
  if (p[2] == "waiters") return Path::kWaiters;
  if (p[2] == "history") return Path::kHistory;
  if (p[2] == "top") return Path::kTop;
  return p[2] == "events" ? Path::kEvents : Path::kUnknown;
}

// The command whose permission the path needs.
std::vector<std::string_view> command_of(Path path, const Url& url) {
  switch (path) {
    case Path::kLocks:
      return {"LOCKS", "LIST", "0"};
    case Path::kLock:
      return {"LOCKS", "INFO", url.parts[3]};
    case Path::kWaiters:
    case Path::kTop:
      return {"LOCKS", "TOP"};
    case Path::kHistory:
      return {"LOCKS", "HISTORY"};
    case Path::kChange:
      return {"LOCKS", url.parts[4], url.parts[3]};
    default:
      return {"INFO"};
  }
}

HttpAnswer answer_read(Call& call, const ShellFacts& facts, Path path) {
  switch (path) {
    case Path::kLocks:
      return answer_list(call);
    case Path::kLock:
      return answer_lock(call, call.url.parts[3]);
    case Path::kWaiters:
      return answer_top(call, "waiters");
    case Path::kTop:
      return answer_top(call, call.url.value("by", "waiters"));
    case Path::kHistory:
      return answer_history(call);
    default:
      return answer_info(call, facts);
  }
}

HttpAnswer answer_events(Call& call) {
  if (!may_read_events(call.ctx.engine, call.user))
    return json_refusal(403, "the user has no permission to run 'locks|history'");
  HttpAnswer answer;
  answer.type = "text/event-stream; charset=utf-8";
  answer.user = call.user.name;
  answer.streams = !call.request.is_head();
  return answer;
}

}  // namespace

bool may_read_events(const Engine& engine, const AclUser& user) {
  static constexpr std::string_view kInfo[] = {"INFO"};
  static constexpr std::string_view kHistory[] = {"LOCKS", "HISTORY"};
  return may_run(engine, user, kInfo) && may_run(engine, user, kHistory);
}

HttpAnswer answer_api(HttpContext& ctx, const ShellFacts& facts, const Url& url, const HttpRequest& request,
                      const Visitor& visitor) {
  const Path path = path_of(url);
  const bool changes = path == Path::kChange;
  if (path == Path::kUnknown) return json_refusal(404, "no such path");
  if (changes ? !request.is_post() : request.method != "GET" && !request.is_head()) {
    HttpAnswer answer = json_refusal(405, "method not allowed");
    answer.allow = changes ? "POST" : "GET, HEAD";
    return answer;
  }
  Engine& engine = ctx.engine;
  Access access = log_in(engine, ctx.now, request, visitor, ctx.rules);
  const AclUser* const user = access.user;
  if (access.allowed() && changes && !has_own_origin(request, visitor))
    access = {nullptr, refusal_of(403, "the Origin of the request must be this server")};
  access = check_command(engine, ctx.now, std::move(access), visitor, command_of(path, url));
  if (!access.allowed()) {
    if (changes) audit_refusal(engine.config(), request, visitor, user);
    return json_refusal(access.refusal);
  }
  Call call{ctx, url, request, visitor, *access.user};
  if (changes) return answer_change(call, url.parts[3], url.parts[4]);
  return path == Path::kEvents ? answer_events(call) : answer_read(call, facts, path);
}

}  // namespace holdfast
