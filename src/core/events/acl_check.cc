// Permission checks, ACL LOG, and the effect of user changes on connections.
#include "core/events/acl_check.h"

#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/config.h"
#include "core/base/glob.h"
#include "core/codec/reply.h"
#include "core/command/acl.h"
#include "core/command/command.h"
#include "core/command/key_access.h"
#include "core/events/describe_client.h"
#include "core/events/request_text.h"
#include "core/state/conn.h"
#include "core/state/context.h"
#include "core/state/effects.h"
#include "core/state/lease_table.h"
#include "core/state/output.h"

namespace holdfast {

namespace {

constexpr std::string_view kNoAuthText = "NOAUTH Authentication required.";

bool may_use_key(const AclSelector& s, std::string_view key, uint8_t access) {
  return std::ranges::any_of(s.keys, [&](const KeyPattern& p) {
    return (p.access & access) == access && glob_match(p.glob, key);
  });
}

bool may_use_channel(const AclSelector& s, std::string_view channel, bool is_pattern) {
  if (s.all_channels) return true;
  return std::ranges::any_of(s.channels, [&](const std::string& glob) {
    return is_pattern ? glob == channel : glob_match(glob, channel);
  });
}

bool may_run(const AclSelector& s, const Command& command, std::span<const std::string_view> argv) {
  const size_t row = row_index(command);
  if (s.commands[row] || command.has(kNoAuth)) return true;
  const auto words = s.first_arguments.find(row);
  if (argv.size() < 2 || words == s.first_arguments.end()) return false;
  return std::ranges::any_of(words->second, [&](const auto& w) { return equals_ignore_case(w, argv[1]); });
}

// Returns the keys of a lease that the request names by its id. Null for other commands, or if there is no
// such lease.
const std::vector<std::string>* keys_of_lease(const EngineState& s, const Command& command,
                                              std::span<const std::string_view> argv) {
  const LiveLease* lease = command.has(kNamesLease) ? s.leases.find(argv[2]) : nullptr;
  return lease == nullptr ? nullptr : &lease->keys;
}

Verdict check_keys(const EngineState& s, const AclSelector& selector, const Command& command,
                   std::span<const std::string_view> argv) {
  const auto positions = key_positions(command, argv);
  for (size_t n = 0; positions && n < positions->size(); ++n) {
    const std::string_view flags = key_flags(command, argv, n);
    const size_t at = (*positions)[n];
    if (flags != "not_key" && !may_use_key(selector, argv[at], access_needed(flags)))
      return {Denial::kKey, at};
  }
  const uint8_t access = command.has(kReadOnly) ? kRead : kWritten;
  if (const auto* keys = keys_of_lease(s, command, argv)) {
    for (const std::string& key : *keys) {
      if (!may_use_key(selector, key, access)) return {Denial::kKey, 2};
    }
  }
  return {};
}

Verdict check_channels(const AclSelector& selector, const Command& command,
                       std::span<const std::string_view> argv) {
  size_t end = command.has(kPublishes) ? 2 : 1;
  if (command.has(kSubscribes)) end = argv.size();
  const bool patterns = command.has(kPatterns);
  for (size_t i = 1; i < end; ++i) {
    if (!may_use_channel(selector, argv[i], patterns)) return {Denial::kChannel, i};
  }
  return {};
}

Verdict check_selector(const EngineState& s, const AclSelector& selector, const Command& command,
                       std::span<const std::string_view> argv) {
  if (!may_run(selector, command, argv)) return {Denial::kCommand, 0};
  if (!selector.all_keys) {
    if (const Verdict v = check_keys(s, selector, command, argv); !v.allowed()) return v;
  }
  return selector.all_channels ? Verdict{} : check_channels(selector, command, argv);
}

bool may_listen(const AclUser& user, std::string_view channel, bool is_pattern) {
  if (may_use_channel(user.root, channel, is_pattern)) return true;
  return std::ranges::any_of(user.selectors,
                             [&](const AclSelector& s) { return may_use_channel(s, channel, is_pattern); });
}

bool may_keep_listening(const Conn& c) {
  const auto plain = [&c](const std::string& name) { return may_listen(*c.user, name, false); };
  const auto pattern = [&c](const std::string& name) { return may_listen(*c.user, name, true); };
  return std::ranges::all_of(c.channels, plain) && std::ranges::all_of(c.shard_channels, plain) &&
         std::ranges::all_of(c.patterns, pattern);
}

void renew_check(const EngineState& s, Conn& c) {
  c.checked = !c.user->unlimited || needs_auth(s, c);
  renew_output_limit(s, c);
}

std::string_view short_text(Denial why) {
  if (why == Denial::kKey) return "access one of the keys used as arguments";
  return "access one of the channels used as arguments";
}

}  // namespace

// If several selectors reject the request, returns the verdict of the check that got furthest.
bool may_read_key(const AclUser& user, std::string_view key) {
  const auto may = [&](const AclSelector& s) { return s.all_keys || may_use_key(s, key, kRead); };
  return may(user.root) || std::ranges::any_of(user.selectors, may);
}

Verdict check_permission(const EngineState& s, const AclUser& user, const Command& command,
                         std::span<const std::string_view> argv) {
  Verdict worst = check_selector(s, user.root, command, argv);
  for (const AclSelector& selector : user.selectors) {
    if (worst.allowed()) return worst;
    const Verdict v = check_selector(s, selector, command, argv);
    if (v.allowed() || v.why > worst.why || (v.why == worst.why && v.at > worst.at)) worst = v;
  }
  return worst;
}

std::string denial_text(Verdict verdict, const Command& command, std::span<const std::string_view> argv) {
  if (verdict.why == Denial::kCommand) {
    return "This user has no permissions to run the '" + std::string(command.name) + "' command";
  }
  return "This user has no permissions to access the '" + std::string(argv[verdict.at]) +
         (verdict.why == Denial::kKey ? "' key" : "' channel");
}

void forget_user(const EngineState& s, Conn& c) {
  c.user = &s.acl.default_user();
  c.authenticated = s.acl.allows_unauthenticated();
  renew_check(s, c);
}

void become_user(const EngineState& s, Conn& c, const AclUser& user) {
  c.user = &user;
  c.authenticated = true;
  renew_check(s, c);
}

void apply_users(Context& ctx) {
  const EngineState& s = ctx.s;
  absl::flat_hash_set<const AclUser*> present;  // a connection may point to a removed user
  for (const auto& [name, user] : s.acl.users()) present.insert(user.get());
  s.conns.for_each([&](Conn& c) {
    const bool same = present.contains(c.user);
    if (!same) c.user = &s.acl.removed_user();
    renew_check(s, c);
    if (c.closing || (same && may_keep_listening(c))) return;
    c.closing = true;
    ctx.fx.closes.push_back(c.id);
  });
}

void set_default_password(Context& ctx, std::string_view password) {
  ctx.s.acl.set_default_password(password);
  apply_users(ctx);
}

void log_denial(Context& ctx, const Conn& c, Denial why, AclContext context, std::string_view object,
                std::string_view username) {
  constexpr int64_t kTogetherMs = 60000;
  constexpr size_t kLookedAt = 10;
  AclLog& log = ctx.s.acl_log;
  AclLogEntry entry{.why = why,
                    .context = context,
                    .object = cut_text(object),
                    .username = cut_text(username),
                    .client = describe_client(ctx, c),
                    .at = ctx.now.mono};
  const auto end = log.begin() + static_cast<int64_t>(std::min(log.size(), kLookedAt));
  const auto old = std::find_if(log.begin(), end, [&](const AclLogEntry& e) {
    return e.why == why && e.context == context && e.object == entry.object &&
           e.username == entry.username && (ctx.now.mono - e.at).count <= kTogetherMs;
  });
  if (old != end) {
    entry.count += old->count;
    log.erase(old);
  }
  log.push_front(std::move(entry));
  while (log.size() > ctx.s.config.acl_log_entries) log.pop_back();
}

void log_verdict(Context& ctx, const Conn& c, Verdict verdict, AclContext context, const Command& command,
                 std::span<const std::string_view> argv) {
  const std::string_view object = verdict.why == Denial::kCommand ? command.name : argv[verdict.at];
  log_denial(ctx, c, verdict.why, context, object, c.user->name);
}

bool refuse_by_acl(Context& ctx, Conn& c, const Command& command, std::span<const std::string_view> argv,
                   Reply& reply) {
  std::string error;
  if (needs_auth(ctx.s, c)) {
    if (command.has(kNoAuth)) return false;
    error = kNoAuthText;
  } else {
    const Verdict v = check_permission(ctx.s, *c.user, command, argv);
    if (v.allowed()) return false;
    log_verdict(ctx, c, v, c.transaction != nullptr ? AclContext::kMulti : AclContext::kTopLevel, command,
                argv);
    error = "NOPERM this user has no permissions to ";
    if (v.why == Denial::kCommand) {
      error.append("run the '").append(command.name).append("' command");
    } else {
      error += short_text(v.why);
    }
  }
  // As in Redis, this error ends the transaction if EXEC itself is rejected.
  reply.error(command.has(kExec) ? "EXECABORT Transaction discarded because of: " + error : error);
  return true;
}

}  // namespace holdfast
