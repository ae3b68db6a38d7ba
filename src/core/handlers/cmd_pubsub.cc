// SUBSCRIBE, UNSUBSCRIBE and their relatives for patterns and shards, PUBLISH, SPUBLISH, PUBSUB.
#include <string>
#include <vector>

#include "core/base/config.h"
#include "core/base/glob.h"
#include "core/codec/reply.h"
#include "core/command/handlers.h"
#include "core/engine/chunked_requests.h"
#include "core/events/publish.h"
#include "core/handlers/scan.h"
#include "core/state/conn.h"
#include "core/state/output.h"
#include "core/state/pubsub.h"
#include "core/state/request.h"

namespace holdfast {

namespace {

// Writes a confirmation. As in Redis, it also reaches a client without replies (CLIENT REPLY), as it
// is a push like a message.
void confirm(Request& r, std::string_view what, const std::string* name, size_t count) {
  const bool muted = r.c.reply_mode == ReplyMode::kOff || r.c.reply_mode == ReplyMode::kSkip;
  Reply reply = muted ? push_to(r.ctx, r.c) : r.reply;
  reply.push(3);
  reply.bulk(what);
  name == nullptr ? reply.null() : reply.bulk(*name);
  reply.integer(static_cast<int64_t>(count));
}

// The number of subscriptions in a confirmation. Shard channels are counted separately.
size_t plain_count(const Conn& c) { return c.channels.size() + c.patterns.size(); }
size_t shard_count(const Conn& c) { return c.shard_channels.size(); }

void subscribe(Request& r, PubSub::Names& map, absl::btree_set<std::string>& own,
               size_t (*count)(const Conn&), size_t end) {
  for (size_t i = 1; i < end; ++i) {
    const std::string name(r.arg(i));
    if (own.insert(name).second) r.s().pubsub.add(map, name, r.c);
    renew_output_limit(r.s(), r.c);
    confirm(r, r.command.name, &name, count(r.c));
  }
}

void unsubscribe(Request& r, PubSub::Names& map, absl::btree_set<std::string>& own,
                 size_t (*count)(const Conn&)) {
  const auto given = r.argv.first(defer_rest(r)).subspan(1);
  std::vector<std::string> names(given.begin(), given.end());
  for (auto it = own.begin(); r.argc() == 1 && it != own.end() && names.size() < chunk_size(r); ++it)
    names.push_back(*it);
  for (const std::string& name : names) {
    if (own.erase(name) > 0) r.s().pubsub.remove(map, name, r.c);
    confirm(r, r.command.name, &name, count(r.c));
  }
  renew_output_limit(r.s(), r.c);
  if (names.empty()) confirm(r, r.command.name, nullptr, count(r.c));
  if (r.argc() == 1 && !own.empty()) defer_again(r);
}

void reply_channels(Request& r, const PubSub::Names& channels) {
  if (r.argc() > 3) return reply_subcommand_syntax(r);
  std::vector<std::string_view> names;
  GlobSteps steps;
  for (const auto& [name, subscribers] : channels) {
    if (r.argc() == 2 || glob_match(r.arg(2), name, steps)) names.push_back(name);
    if (steps.taken >= kPageSteps)
      return r.reply.error("ERR the pattern is too costly for so many channels");
  }
  r.reply.array(names.size());
  for (const std::string_view name : names) r.reply.bulk(name);
}

void reply_counts(Request& r, const PubSub::Names& channels) {
  r.reply.array(2 * (r.argc() - 2));
  for (size_t i = 2; i < r.argc(); ++i) {
    const auto it = channels.find(r.arg(i));
    r.reply.bulk(r.arg(i));
    r.reply.integer(it == channels.end() ? 0 : static_cast<int64_t>(it->second.size()));
  }
}

}  // namespace

void cmd_subscribe(Request& r) {
  subscribe(r, r.s().pubsub.channels, r.c.channels, plain_count, defer_rest(r));
}
// Not chunked, so that it accepts all patterns or none.
void cmd_psubscribe(Request& r) {
  auto& known = r.s().pubsub.patterns;
  const size_t most = r.s().config.limits.patterns;
  size_t all = known.size();
  for (size_t i = 1; i < r.argc() && all <= most; ++i) all += known.contains(r.arg(i)) ? 0 : 1;
  if (all > most) return r.reply.error("ERR too many patterns: see max-pubsub-patterns");
  subscribe(r, known, r.c.patterns, plain_count, r.argc());
}
void cmd_ssubscribe(Request& r) {
  subscribe(r, r.s().pubsub.shard_channels, r.c.shard_channels, shard_count, defer_rest(r));
}
void cmd_unsubscribe(Request& r) { unsubscribe(r, r.s().pubsub.channels, r.c.channels, plain_count); }
void cmd_punsubscribe(Request& r) { unsubscribe(r, r.s().pubsub.patterns, r.c.patterns, plain_count); }
void cmd_sunsubscribe(Request& r) {
  unsubscribe(r, r.s().pubsub.shard_channels, r.c.shard_channels, shard_count);
}

void cmd_publish(Request& r) { r.reply.integer(publish(r.ctx, r.arg(1), r.arg(2))); }
void cmd_spublish(Request& r) { r.reply.integer(publish_to_shard(r.ctx, r.arg(1), r.arg(2))); }

void cmd_pubsub_channels(Request& r) { reply_channels(r, r.s().pubsub.channels); }
void cmd_pubsub_shardchannels(Request& r) { reply_channels(r, r.s().pubsub.shard_channels); }
void cmd_pubsub_numsub(Request& r) { reply_counts(r, r.s().pubsub.channels); }
void cmd_pubsub_shardnumsub(Request& r) { reply_counts(r, r.s().pubsub.shard_channels); }
void cmd_pubsub_numpat(Request& r) { r.reply.integer(static_cast<int64_t>(r.s().pubsub.patterns.size())); }

void cmd_pubsub_help(Request& r) {
  static constexpr std::string_view kLines[] = {
      "CHANNELS [<pattern>]",
      "    Return the currently active channels matching a <pattern> (default: '*').",
      "NUMPAT",
      "    Return number of subscriptions to patterns.",
      "NUMSUB [<channel> ...]",
      "    Return the number of subscribers for the specified channels, excluding",
      "    pattern subscriptions(default: no channels).",
      "SHARDCHANNELS [<pattern>]",
      "    Return the currently active shard level channels matching a <pattern> (default: '*').",
      "SHARDNUMSUB [<shardchannel> ...]",
      "    Return the number of subscribers for the specified shard level channel(s)",
  };
  reply_help(r, kLines);
}

}  // namespace holdfast
