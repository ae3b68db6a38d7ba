// Rows of the command table: connections.
#include "core/command/command.h"
#include "core/command/handlers.h"

namespace holdfast {

namespace {

using enum KeyUse;

constexpr Command kConnectionRows[] = {
    {"auth", cmd_auth, -2, kNoScript | kLoading | kStale | kFast | kNoAuth | kAllowBusy | kConnection, 0, 0,
     0, kNoKeys, "connection", "1.0.0", "O(1)", "Authenticates the connection.", "[username] password",
     Secrets::kAll},
    {"client", nullptr, -2, kSubcommands | kKeepsCaching, 0, 0, 0, kNoKeys, "connection", "2.4.0",
     "Depends on subcommand.", "A container for client connection commands.", ""},
    {"client|caching", cmd_client_caching, 3, kNoScript | kLoading | kStale | kConnection | kKeepsCaching,
     0, 0, 0, kNoKeys, "connection", "6.0.0", "O(1)",
     "Instruct the server about tracking or not keys in the next request.", "<YES | NO>"},
    {"client|getname", cmd_client_getname, 2, kNoScript | kLoading | kStale | kConnection | kKeepsCaching,
     0, 0, 0, kNoKeys, "connection", "2.6.9", "O(1)", "Returns the name of the connection.", ""},
    {"client|getredir", cmd_client_getredir, 2, kNoScript | kLoading | kStale | kConnection | kKeepsCaching,
     0, 0, 0, kNoKeys, "connection", "6.0.0", "O(1)",
     "Get tracking notifications redirection client ID if any.", ""},
    {"client|help", cmd_client_help, 2, kLoading | kStale | kConnection | kKeepsCaching, 0, 0, 0, kNoKeys,
     "connection", "5.0.0", "O(1)", "Returns helpful text about the different subcommands.", ""},
    {"client|id", cmd_client_id, 2, kNoScript | kLoading | kStale | kConnection | kKeepsCaching, 0, 0, 0,
     kNoKeys, "connection", "5.0.0", "O(1)", "Returns the unique client ID of the connection.", ""},
    {"client|info", cmd_client_info, 2, kNoScript | kLoading | kStale | kConnection | kKeepsCaching, 0, 0,
     0, kNoKeys, "connection", "6.2.0", "O(1)", "Returns information about the connection.", ""},
    {"client|kill", cmd_client_kill, -3,
     kAdmin | kNoScript | kLoading | kStale | kConnection | kDangerous | kKeepsCaching, 0, 0, 0, kNoKeys,
     "connection", "2.4.0", "O(N) where N is the number of client connections",
     "Terminates open connections.",
     "<address | [ID client-id] [TYPE <NORMAL | MASTER | SLAVE | REPLICA | PUBSUB>] [USER username] [ADDR "
     "address] [LADDR address] [SKIPME yes/no]>"},
    {"client|list", cmd_client_list, -2,
     kAdmin | kNoScript | kLoading | kStale | kConnection | kDangerous | kKeepsCaching, 0, 0, 0, kNoKeys,
     "connection", "2.4.0", "O(N) where N is the number of client connections", "Lists open connections.",
     "[TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id [client-id ...]]"},
    {"client|no-evict", cmd_client_no_evict, 3,
     kAdmin | kNoScript | kLoading | kStale | kConnection | kDangerous | kKeepsCaching, 0, 0, 0, kNoKeys,
     "connection", "7.0.0", "O(1)", "Set client eviction mode for the current connection.", "<ON | OFF>"},
    {"client|no-touch", cmd_client_no_touch, 3, kNoScript | kLoading | kStale | kConnection | kKeepsCaching,
     0, 0, 0, kNoKeys, "connection", "7.2.0", "O(1)",
     "Controls whether commands of the client count as an access to their keys.", "<ON | OFF>"},
    {"client|pause", cmd_client_pause, -3,
     kAdmin | kNoScript | kLoading | kStale | kConnection | kDangerous | kKeepsCaching, 0, 0, 0, kNoKeys,
     "connection", "2.9.50", "O(1)", "Stop processing commands from clients for some time.",
     "timeout [WRITE | ALL]"},
    {"client|reply", cmd_client_reply, 3, kNoScript | kLoading | kStale | kConnection | kKeepsCaching, 0, 0,
     0, kNoKeys, "connection", "3.2.0", "O(1)", "Instruct the server whether to reply to commands.",
     "<ON | OFF | SKIP>"},
    {"client|setinfo", cmd_client_setinfo, 4, kNoScript | kLoading | kStale | kConnection | kKeepsCaching,
     0, 0, 0, kNoKeys, "connection", "7.2.0", "O(1)",
     "Sets information specific to the client or connection.", "<LIB-NAME libname | LIB-VER libver>"},
    {"client|setname", cmd_client_setname, 3, kNoScript | kLoading | kStale | kConnection | kKeepsCaching,
     0, 0, 0, kNoKeys, "connection", "2.6.9", "O(1)", "Sets the connection name.", "connection-name"},
    {"client|tracking", cmd_client_tracking, -3,
     kNoScript | kLoading | kStale | kConnection | kKeepsNames | kKeepsCaching, 0, 0, 0, kNoKeys,
     "connection", "6.0.0", "O(1). Some options may introduce additional complexity.",
     "Enable or disable server assisted client side caching support.",
     "<ON | OFF> [REDIRECT client-id] [PREFIX prefix [PREFIX prefix ...]] [BCAST] [OPTIN] [OPTOUT] "
     "[NOLOOP]"},
    {"client|trackinginfo", cmd_client_trackinginfo, 2,
     kNoScript | kLoading | kStale | kConnection | kKeepsCaching, 0, 0, 0, kNoKeys, "connection", "6.2.0",
     "O(1)", "Return information about server assisted client side caching for the current connection.",
     ""},
    {"client|unblock", cmd_client_unblock, -3,
     kAdmin | kNoScript | kLoading | kStale | kConnection | kDangerous | kKeepsCaching, 0, 0, 0, kNoKeys,
     "connection", "5.0.0", "O(log N) where N is the number of client connections",
     "Unblocks a client that waits for a lock from another connection.", "client-id [TIMEOUT | ERROR]"},
    {"client|unpause", cmd_client_unpause, 2,
     kAdmin | kNoScript | kLoading | kStale | kConnection | kDangerous | kKeepsCaching, 0, 0, 0, kNoKeys,
     "connection", "6.2.0", "O(N) Where N is the number of paused clients",
     "Resume processing of clients that were paused.", ""},
    {"echo", cmd_echo, 2, kLoading | kStale | kFast | kConnection, 0, 0, 0, kNoKeys, "connection", "1.0.0",
     "O(1)", "Returns the given string.", "message"},
    {"hello", cmd_hello, -1, kNoScript | kLoading | kStale | kFast | kNoAuth | kAllowBusy | kConnection, 0,
     0, 0, kNoKeys, "connection", "6.0.0", "O(1)", "Handshakes with the server.",
     "[protover [AUTH <username password>] [SETNAME clientname]]", Secrets::kAfterAuth},
    {"ping", cmd_ping, -1, kFast | kConnection | kForSubscribers, 0, 0, 0, kNoKeys, "connection", "1.0.0",
     "O(1)", "Returns the server's liveliness response.", "[message]"},
    {"quit", cmd_quit, -1,
     kNoScript | kLoading | kStale | kFast | kNoAuth | kAllowBusy | kConnection | kInMulti | kEndsMulti |
         kForSubscribers,
     0, 0, 0, kNoKeys, "connection", "1.0.0", "O(1)", "Closes the connection.", ""},
    {"reset", cmd_reset, 1,
     kNoScript | kLoading | kStale | kFast | kNoAuth | kAllowBusy | kConnection | kInMulti | kEndsMulti |
         kForSubscribers,
     0, 0, 0, kNoKeys, "connection", "6.2.0", "O(1)", "Resets the connection.", ""},
    {"select", cmd_select, 2, kLoading | kStale | kFast | kConnection, 0, 0, 0, kNoKeys, "connection",
     "1.0.0", "O(1)", "Changes the selected database.", "index"},
};

}  // namespace

std::span<const Command> connection_commands() { return kConnectionRows; }

}  // namespace holdfast
