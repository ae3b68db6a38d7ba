// Rows of the command table: users.
#include "core/command/command.h"
#include "core/command/handlers.h"

namespace holdfast {

namespace {

using enum KeyUse;

constexpr uint64_t kForAll = kNoScript | kLoading | kStale;
constexpr uint64_t kForAdmins = kForAll | kAdmin | kDangerous;

constexpr Command kAclRows[] = {
    {"acl", nullptr, -2, kSubcommands, 0, 0, 0, kNoKeys, "server", "6.0.0", "Depends on subcommand.",
     "A container for Access List Control commands.", ""},
    {"acl|cat", cmd_acl_cat, -2, kForAll, 0, 0, 0, kNoKeys, "server", "6.0.0",
     "O(1) since the categories and commands are a fixed set.",
     "Lists the ACL categories, or the commands inside a category.", "[category]"},
    {"acl|deluser", cmd_acl_deluser, -3, kForAdmins, 0, 0, 0, kNoKeys, "server", "6.0.0",
     "O(N) with N connections", "Deletes ACL users, and terminates their connections.",
     "username [username ...]"},
    {"acl|dryrun", cmd_acl_dryrun, -4, kForAdmins, 0, 0, 0, kNoKeys, "server", "7.0.0", "O(1).",
     "Simulates the execution of a command by a user, without executing the command.",
     "username command [arg [arg ...]]", Secrets::kOfRequestAt3},
    {"acl|genpass", cmd_acl_genpass, -2, kForAll, 0, 0, 0, kNoKeys, "server", "6.0.0", "O(1)",
     "Generates a pseudorandom, secure password that can be used to identify ACL users.", "[bits]"},
    {"acl|getuser", cmd_acl_getuser, 3, kForAdmins, 0, 0, 0, kNoKeys, "server", "6.0.0",
     "O(N). Where N is the number of password, command and pattern rules that the user has.",
     "Lists the ACL rules of a user.", "username"},
    {"acl|help", cmd_acl_help, 2, kLoading | kStale, 0, 0, 0, kNoKeys, "server", "6.0.0", "O(1)",
     "Returns helpful text about the different subcommands.", ""},
    {"acl|list", cmd_acl_list, 2, kForAdmins, 0, 0, 0, kNoKeys, "server", "6.0.0",
     "O(N). Where N is the number of configured users.", "Dumps the effective rules in ACL file format.",
     ""},
    {"acl|load", cmd_acl_load, 2, kForAdmins, 0, 0, 0, kNoKeys, "server", "6.0.0",
     "O(N). Where N is the number of configured users.", "Reloads the rules from the configured ACL file.",
     ""},
    {"acl|log", cmd_acl_log, -2, kForAdmins, 0, 0, 0, kNoKeys, "server", "6.0.0",
     "O(N) with N being the number of entries shown.",
     "Lists recent security events generated due to ACL rules.", "[count | RESET]"},
    {"acl|save", cmd_acl_save, 2, kForAdmins, 0, 0, 0, kNoKeys, "server", "6.0.0",
     "O(N). Where N is the number of configured users.",
     "Saves the effective ACL rules in the configured ACL file.", ""},
    {"acl|setuser", cmd_acl_setuser, -3, kForAdmins, 0, 0, 0, kNoKeys, "server", "6.0.0",
     "O(N). Where N is the number of rules provided.", "Creates and modifies an ACL user and its rules.",
     "username [rule [rule ...]]", Secrets::kUserRules},
    {"acl|users", cmd_acl_users, 2, kForAdmins, 0, 0, 0, kNoKeys, "server", "6.0.0",
     "O(N). Where N is the number of configured users.", "Lists all ACL users.", ""},
    {"acl|whoami", cmd_acl_whoami, 2, kForAll, 0, 0, 0, kNoKeys, "server", "6.0.0", "O(1)",
     "Returns the authenticated username of the current connection.", ""},
};

}  // namespace

std::span<const Command> acl_commands() { return kAclRows; }

}  // namespace holdfast
