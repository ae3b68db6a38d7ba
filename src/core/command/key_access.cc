// The flags of each use of keys. For commands of Redis they match Redis 7.0.
#include "core/command/key_access.h"

#include <array>

#include "core/base/parse.h"
#include "core/command/command.h"
#include "core/command/value_test.h"

namespace holdfast {

namespace {

struct UseFlags {
  KeyUse use;
  std::string_view first;   // flags of the first key
  std::string_view others;  // flags of all other keys
};

constexpr std::string_view kSetAndGet = "RW access update";
constexpr std::string_view kSetOnly = "OW update";

constexpr std::array kUses = std::to_array<UseFlags>({
    {KeyUse::kNoKeys, "", ""},
    {KeyUse::kInspects, "RO", "RO"},
    {KeyUse::kGets, "RO access", "RO access"},
    {KeyUse::kGetsAndUpdates, kSetAndGet, kSetAndGet},
    {KeyUse::kUpdates, "RW update", "RW update"},
    {KeyUse::kInserts, "RW insert", "RW insert"},
    {KeyUse::kErases, "RW delete", "RW delete"},
    {KeyUse::kDeletes, "RM delete", "RM delete"},
    {KeyUse::kDeletesIf, "RW delete", "RW delete"},
    {KeyUse::kPops, "RW access delete", "RW access delete"},
    {KeyUse::kSets, kSetAndGet, kSetAndGet},
    {KeyUse::kStores, kSetOnly, kSetOnly},
    {KeyUse::kStoresNew, "OW insert", "OW insert"},
    {KeyUse::kCopies, "RO access", "OW update"},
    {KeyUse::kRenames, "RW access delete", "OW update"},
    {KeyUse::kRenamesToNew, "RW access delete", "OW insert"},
    {KeyUse::kMoves, "RW access delete", "RW insert"},
    {KeyUse::kStoresFrom, kSetOnly, "RO access"},
    {KeyUse::kUpdatesFrom, "RW update", "RO access"},
    {KeyUse::kChannelNames, "not_key", "not_key"},
});

constexpr bool is_in_order() {
  for (size_t i = 0; i < kUses.size(); ++i) {
    if (static_cast<size_t>(kUses[i].use) != i) return false;
  }
  return true;
}
static_assert(is_in_order() && kUses.back().use == KeyUse::kChannelNames);

std::string_view set_flags(std::span<const std::string_view> argv) {
  std::string_view flags = kSetOnly;
  for (size_t i = 3; i < argv.size(); ++i) {
    if (equals_ignore_case(argv[i], "GET")) return kSetAndGet;
    if (condition_word(argv[i]) != ValueTest::kNone) flags = "RW update";
  }
  return flags;
}

}  // namespace

std::string_view widest_key_flags(const Command& command, size_t nth) {
  const UseFlags& use = kUses[static_cast<size_t>(command.key_use)];
  return nth == 0 ? use.first : use.others;
}

std::string_view key_flags(const Command& command, std::span<const std::string_view> argv, size_t nth) {
  if (command.key_use == KeyUse::kSets) return set_flags(argv);
  const bool no_condition = command.key_use == KeyUse::kDeletesIf && argv.size() == 2;
  return no_condition ? "RM delete" : widest_key_flags(command, nth);
}

uint8_t access_needed(std::string_view flags) {
  uint8_t access = kSeen;
  if (flags.find("access") != std::string_view::npos) access |= kRead;
  for (const std::string_view change : {"insert", "delete", "update"}) {
    if (flags.find(change) != std::string_view::npos) access |= kWritten;
  }
  return access;
}

}  // namespace holdfast
