// Rows of the command table: channels.
#include "core/command/command.h"
#include "core/command/handlers.h"

namespace holdfast {

namespace {

using enum KeyUse;

constexpr Command kPubsubRows[] = {
    {"psubscribe", cmd_psubscribe, -2,
     kPubSub | kNoScript | kLoading | kStale | kKeepsNames | kForSubscribers | kSubscribes | kPatterns, 0,
     0, 0, kNoKeys, "pubsub", "2.0.0",
     "O(N) where N is the number of patterns the client is already subscribed to",
     "Listen for messages published to channels matching the given patterns.", "pattern [pattern ...]"},
    {"publish", cmd_publish, 3, kPubSub | kLoading | kStale | kFast | kPublishes, 0, 0, 0, kNoKeys,
     "pubsub", "2.0.0",
     "O(N+M) where N is the number of clients subscribed to the receiving channel and M is the total "
     "number of subscribed patterns (by any client)",
     "Post a message to a channel.", "channel message"},
    {"pubsub", nullptr, -2, kSubcommands, 0, 0, 0, kNoKeys, "pubsub", "2.8.0", "Depends on subcommand.",
     "A container for Pub/Sub commands.", ""},
    {"pubsub|channels", cmd_pubsub_channels, -2, kPubSub | kLoading | kStale, 0, 0, 0, kNoKeys, "pubsub",
     "2.8.0",
     "O(N) where N is the number of active channels, and assuming constant time pattern matching "
     "(relatively short channels and patterns)",
     "List active channels.", "[pattern]"},
    {"pubsub|help", cmd_pubsub_help, 2, kLoading | kStale, 0, 0, 0, kNoKeys, "pubsub", "6.2.0", "O(1)",
     "Show helpful text about the different subcommands.", ""},
    {"pubsub|numpat", cmd_pubsub_numpat, 2, kPubSub | kLoading | kStale, 0, 0, 0, kNoKeys, "pubsub",
     "2.8.0", "O(1)", "Get the count of unique patterns pattern subscriptions.", ""},
    {"pubsub|numsub", cmd_pubsub_numsub, -2, kPubSub | kLoading | kStale, 0, 0, 0, kNoKeys, "pubsub",
     "2.8.0", "O(N) for the NUMSUB subcommand, where N is the number of requested channels",
     "Get the count of subscribers for channels.", "[channel [channel ...]]"},
    {"pubsub|shardchannels", cmd_pubsub_shardchannels, -2, kPubSub | kLoading | kStale, 0, 0, 0, kNoKeys,
     "pubsub", "7.0.0",
     "O(N) where N is the number of active shard channels, and assuming constant time pattern matching "
     "(relatively short shard channels)",
     "List active shard channels.", "[pattern]"},
    {"pubsub|shardnumsub", cmd_pubsub_shardnumsub, -2, kPubSub | kLoading | kStale, 0, 0, 0, kNoKeys,
     "pubsub", "7.0.0",
     "O(N) for the SHARDNUMSUB subcommand, where N is the number of requested shard channels",
     "Get the count of subscribers for shard channels.", "[shardchannel [shardchannel ...]]"},
    {"punsubscribe", cmd_punsubscribe, -1, kPubSub | kNoScript | kLoading | kStale | kForSubscribers, 0, 0,
     0, kNoKeys, "pubsub", "2.0.0",
     "O(N+M) where N is the number of patterns the client is already subscribed and M is the number of "
     "total patterns subscribed in the system (by any client)",
     "Stop listening for messages posted to channels matching the given patterns.",
     "[pattern [pattern ...]]"},
    {"spublish", cmd_spublish, 3, kPubSub | kLoading | kStale | kFast | kPublishes, 1, 1, 1, kChannelNames,
     "pubsub", "7.0.0", "O(N) where N is the number of clients subscribed to the receiving shard channel",
     "Post a message to a shard channel.", "shardchannel message"},
    {"ssubscribe", cmd_ssubscribe, -2,
     kPubSub | kNoScript | kLoading | kStale | kKeepsNames | kForSubscribers | kSubscribes, 1, -1, 1,
     kChannelNames, "pubsub", "7.0.0", "O(N) where N is the number of shard channels to subscribe to.",
     "Listen for messages published to the given shard channels.", "shardchannel [shardchannel ...]"},
    {"subscribe", cmd_subscribe, -2,
     kPubSub | kNoScript | kLoading | kStale | kKeepsNames | kForSubscribers | kSubscribes, 0, 0, 0,
     kNoKeys, "pubsub", "2.0.0", "O(N) where N is the number of channels to subscribe to.",
     "Listen for messages published to the given channels.", "channel [channel ...]"},
    {"sunsubscribe", cmd_sunsubscribe, -1, kPubSub | kNoScript | kLoading | kStale | kForSubscribers, 1, -1,
     1, kChannelNames, "pubsub", "7.0.0",
     "O(N) where N is the number of clients already subscribed to a shard channel",
     "Stop listening for messages posted to the given shard channels.",
     "[shardchannel [shardchannel ...]]"},
    {"unsubscribe", cmd_unsubscribe, -1, kPubSub | kNoScript | kLoading | kStale | kForSubscribers, 0, 0, 0,
     kNoKeys, "pubsub", "2.0.0", "O(N) where N is the number of clients already subscribed to a channel.",
     "Stop listening for messages posted to the given channels.", "[channel [channel ...]]"},
};

}  // namespace

std::span<const Command> pubsub_commands() { return kPubsubRows; }

}  // namespace holdfast
