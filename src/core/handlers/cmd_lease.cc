// LEASE: acquires several keys at once, all or none.
#include <absl/container/flat_hash_set.h>

#include <string>

#include "core/base/config.h"
#include "core/command/handlers.h"
#include "core/keyspace/keyspace.h"
#include "core/lock/leases.h"
#include "core/state/conn.h"
#include "core/state/lease_table.h"
#include "core/state/request.h"

namespace holdfast {

namespace {

constexpr size_t kMaxLeaseIdBytes = 512;
constexpr size_t kMaxLeaseKeys = 10000;  // the end of a lease is one step

void reply_outcome(Request& r, const LeaseOutcome* outcome) {
  if (outcome == nullptr) return r.reply.error("NOLEASE no such lease");
  switch (outcome->state) {
    case LeaseState::kConfirmed:
      return r.reply.error("CONFIRMED the lease is confirmed");
    case LeaseState::kCancelled:
      return r.reply.error("CANCELLED the lease was cancelled");
    default:
      return r.reply.error("EXPIRED the lease has expired");
  }
}

// Returns the live lease named in argument 2. If there is none, writes the reply and returns null.
LiveLease* find_lease(Request& r) {
  LiveLease* lease = r.s().leases.find(r.arg(2));
  if (lease == nullptr) reply_outcome(r, r.s().leases.outcome(r.arg(2)));
  return lease;
}

std::optional<DurationMs> read_ttl(Request& r, size_t i) {
  const auto ttl = read_number(r, i, "ttl", 1, kMaxTtlMs);
  return ttl ? std::optional(DurationMs{*ttl}) : std::nullopt;
}

std::optional<std::vector<LeaseItem>> read_documents(Request& r) {
  std::vector<LeaseItem> documents;
  absl::flat_hash_set<std::string_view> keys;
  for (size_t i = 4; i < r.argc(); i += 2) {
    documents.push_back({r.arg(i), r.arg(i + 1)});
    if (keys.insert(r.arg(i)).second) continue;
    r.reply.error("ERR a key is given twice");
    return std::nullopt;
  }
  return documents;
}

std::string make_lease_id(const Request& r) {
  uint8_t bytes[16];
  r.s().config.random(bytes);
  std::string id;
  append_hex(id, bytes);
  return id;
}

std::string_view state_name(LeaseState state) {
  switch (state) {
    case LeaseState::kGranted:
      return "granted";
    case LeaseState::kConfirmed:
      return "confirmed";
    case LeaseState::kCancelled:
      return "cancelled";
    case LeaseState::kExpired:
      break;
  }
  return "expired";
}

void write_info(Request& r, LeaseState state, int64_t ttl_ms, Token token,
                const std::vector<std::string>& keys) {
  r.reply.map(4);
  r.reply.bulk("state");
  r.reply.bulk(state_name(state));
  r.reply.bulk("ttl");
  r.reply.integer(ttl_ms);
  r.reply.bulk("token");
  r.reply.integer(static_cast<int64_t>(token.value));
  r.reply.bulk("keys");
  r.reply.array(keys.size());
  for (const std::string& key : keys) r.reply.bulk(key);
}

}  // namespace

void cmd_lease_grant(Request& r) {
  if (r.argc() % 2 != 0) return reply_wrong_arity(r);
  const std::string id = r.arg(2) == "*" ? make_lease_id(r) : std::string(r.arg(2));
  if (id.empty() || id.size() > kMaxLeaseIdBytes) {
    return r.reply.error("ERR id must be 1 to " + std::to_string(kMaxLeaseIdBytes) + " bytes");
  }
  const auto ttl = read_ttl(r, 3);
  if (!ttl) return;
  if ((r.argc() - 4) / 2 > kMaxLeaseKeys) {
    return r.reply.error("ERR a lease has at most " + std::to_string(kMaxLeaseKeys) + " keys");
  }
  const auto documents = read_documents(r);
  if (!documents) return;
  if (r.s().leases.find(id) != nullptr) return r.reply.error("ERR lease id is in use");
  const LeaseGrant grant = grant_lease(r.ctx, r.c, id, *ttl, *documents);
  if (grant.token.value != 0) {
    r.reply.array(2);
    r.reply.bulk(id);
    return r.reply.integer(static_cast<int64_t>(grant.token.value));
  }
  if (grant.colliding.empty()) return reply_too_many_ahead(r);
  r.reply.array(2);
  r.reply.null();
  r.reply.array(grant.colliding.size());
  for (const std::string_view key : grant.colliding) r.reply.bulk(key);
}

void cmd_lease_confirm(Request& r) {
  LiveLease* lease = find_lease(r);
  if (lease == nullptr) return;
  const Token token = lease->token;
  if (!confirm_lease(r.ctx, lease, r.c.id)) return reply_outcome(r, r.s().leases.outcome(r.arg(2)));
  r.reply.integer(static_cast<int64_t>(token.value));
}

void cmd_lease_cancel(Request& r) {
  if (LiveLease* lease = r.s().leases.find(r.arg(2))) {
    cancel_lease(r.ctx, lease);
    return r.reply.ok();
  }
  const LeaseOutcome* outcome = r.s().leases.outcome(r.arg(2));
  if (outcome != nullptr && outcome->state == LeaseState::kExpired) return r.reply.ok();
  reply_outcome(r, outcome);
}

void cmd_lease_renew(Request& r) {
  if (r.argc() > 4) return reply_wrong_arity(r);
  std::optional<DurationMs> ttl;
  if (r.argc() == 4 && !(ttl = read_ttl(r, 3))) return;
  LiveLease* lease = find_lease(r);
  if (lease == nullptr) return;
  if (!renew_lease(r.ctx, lease, ttl.value_or(lease->ttl), r.c.id))
    return reply_outcome(r, r.s().leases.outcome(r.arg(2)));
  r.reply.integer(1);
}

void cmd_lease_info(Request& r) {
  if (const LiveLease* lease = r.s().leases.find(r.arg(2))) {
    return write_info(r, LeaseState::kGranted, (lease->at() - r.now()).count, lease->token, lease->keys);
  }
  const LeaseOutcome* outcome = r.s().leases.outcome(r.arg(2));
  if (outcome == nullptr) return reply_outcome(r, outcome);
  write_info(r, outcome->state, -1, outcome->token, {});
}

void cmd_lease_help(Request& r) {
  static constexpr std::string_view kLines[] = {
      "CANCEL <id>",
      "    Cancel the lease and delete its keys.",
      "CONFIRM <id>",
      "    Make the lease's keys permanent; return the fencing token.",
      "GRANT <id> <ttl> <key> <value> [<key> <value> ...]",
      "    Set free keys to values for <ttl> milliseconds, all or none. <id> may be *.",
      "INFO <id>",
      "    Return state, TTL in milliseconds, token and keys of a lease.",
      "RENEW <id> [<ttl>]",
      "    Reset the lease's TTL.",
  };
  reply_help(r, kLines);
}

}  // namespace holdfast
