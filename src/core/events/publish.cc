// Sends messages to subscribers. A message is encoded once per protocol, for any number of subscribers.
#include "core/events/publish.h"

#include <algorithm>
#include <span>
#include <vector>

#include "core/base/glob.h"
#include "core/codec/reply.h"
#include "core/state/conn.h"
#include "core/state/context.h"
#include "core/state/output.h"
#include "core/state/pubsub.h"

namespace holdfast {

namespace {

// Steps (GlobSteps) that all patterns together may take for one message, for any length of the channel's
// name: about 1 ms. Each pattern has an equal part, but at least kFewestSteps. From 256 patterns on each
// has exactly that.
constexpr uint64_t kPublishSteps = uint64_t{1} << 18;
constexpr uint64_t kFewestSteps = 1024;

// A message of several strings, as RESP2 and RESP3 write it.
class Message {
 public:
  explicit Message(std::span<const std::string_view> parts) : parts_(parts) {}

  std::string_view encoded(int protocol) {
    Buffer& form = protocol >= 3 ? resp3_ : resp2_;
    if (form.empty()) {
      Reply reply(form, protocol);
      reply.push(parts_.size());
      for (const std::string_view part : parts_) reply.bulk(part);
    }
    return form.view();
  }

 private:
  std::span<const std::string_view> parts_;
  Buffer resp2_;
  Buffer resp3_;
};

// Disconnects a slow subscriber at once, as one loop iteration may publish many messages.
void send(Context& ctx, Conn& c, Message& message) {
  if (c.closing) return;
  // A client's own message precedes the reply of its request, as in Redis 7.0, but is never inside the
  // reply of EXEC.
  const bool at_once = c.running && !c.in_exec && c.reply_mode == ReplyMode::kOn;
  mark_dirty(ctx, c);
  Buffer& out = at_once ? c.out : push_to(ctx, c).out();
  out.append(message.encoded(c.protocol));
  if (out.overflowed()) close_slow_reader(ctx, c);
}

int64_t send_to(Context& ctx, const PubSub::Subscribers& subscribers,
                std::span<const std::string_view> parts) {
  Message message(parts);
  for (const auto& [serial, id] : subscribers) send(ctx, ctx.s.conns.at(id), message);
  return static_cast<int64_t>(subscribers.size());
}

// Returns the first bytes of patterns that may match: in the order of the tree, each once. May contain an
// empty string.
std::vector<std::string_view> possible_prefixes(std::string_view channel) {
  std::vector<std::string_view> all = {"*", "?", "[", "\\", channel.substr(0, 1)};
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

void unsubscribe_from(PubSub& all, PubSub::Names& map, Conn& c, absl::btree_set<std::string>& names,
                      size_t most) {
  for (auto name = names.begin(); most > 0 && name != names.end(); --most, name = names.erase(name)) {
    all.remove(map, *name, c);
  }
}

}  // namespace

int64_t publish(Context& ctx, std::string_view channel, std::string_view message) {
  int64_t sent = 0;
  const PubSub& all = ctx.s.pubsub;
  if (const auto it = all.channels.find(channel); it != all.channels.end()) {
    const std::string_view parts[] = {"message", channel, message};
    sent += send_to(ctx, it->second, parts);
  }
  if (all.patterns.empty()) return sent;
  const uint64_t part = kPublishSteps / all.patterns.size();
  GlobSteps steps{.allowed = std::max(part, kFewestSteps), .free = 0};
  for (const std::string_view begin : possible_prefixes(channel)) {
    for (auto it = all.patterns.lower_bound(begin);
         it != all.patterns.end() && std::string_view(it->first).substr(0, 1) == begin; ++it) {
      if (!glob_match(it->first, channel, steps)) continue;
      const std::string_view parts[] = {"pmessage", it->first, channel, message};
      sent += send_to(ctx, it->second, parts);
    }
  }
  return sent;
}

int64_t publish_to_shard(Context& ctx, std::string_view channel, std::string_view message) {
  const auto it = ctx.s.pubsub.shard_channels.find(channel);
  if (it == ctx.s.pubsub.shard_channels.end()) return 0;
  const std::string_view parts[] = {"smessage", channel, message};
  return send_to(ctx, it->second, parts);
}

void unsubscribe_all(Context& ctx, Conn& c, size_t most) {
  PubSub& all = ctx.s.pubsub;
  unsubscribe_from(all, all.channels, c, c.channels, most);
  unsubscribe_from(all, all.patterns, c, c.patterns, most);
  unsubscribe_from(all, all.shard_channels, c, c.shard_channels, most);
  renew_output_limit(ctx.s, c);
}

}  // namespace holdfast
