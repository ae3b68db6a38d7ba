// The categories of each command.
#include "core/command/categories.h"

#include "core/base/parse.h"
#include "core/command/command.h"

namespace holdfast {

namespace {

constexpr std::string_view kNames[] = {
    "keyspace", "read",        "write",      "set",         "sortedset", "list",  "hash", "string",
    "bitmap",   "hyperloglog", "geo",        "stream",      "pubsub",    "admin", "fast", "slow",
    "blocking", "dangerous",   "connection", "transaction", "scripting", "lock"};

bool belongs(const Command& c, std::string_view category) {
  const auto has = [&c](uint64_t flags) { return c.has(flags); };
  const bool container = c.handler == nullptr;
  if (category == "keyspace") return has(kKeyspace);
  if (category == "read") return has(kReadOnly) && !has(kScript);
  if (category == "write") return has(kWrite);
  if (category == "sortedset") return c.group == "sorted-set";
  for (const std::string_view group : {"hash", "list", "lock", "set", "string"}) {
    if (category == group) return c.group == category;
  }
  if (category == "pubsub") return has(kPubSub);
  if (category == "admin") return has(kAdmin | kAdminCategory);
  if (category == "fast") return has(kFast);
  if (category == "slow") return !has(kFast);
  if (category == "blocking") return has(kBlocking);
  if (category == "dangerous") return has(kDangerous);
  if (category == "connection") return has(kConnection);
  if (category == "transaction") return c.group == "transactions";
  return category == "scripting" && c.group == "scripting" && !container;
}

}  // namespace

std::span<const std::string_view> category_names() { return kNames; }

std::optional<uint32_t> category_named(std::string_view name) {
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (equals_ignore_case(kNames[i], name)) return 1U << i;
  }
  return std::nullopt;
}

uint32_t categories_of(const Command& command) {
  uint32_t set = 0;
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (belongs(command, kNames[i])) set |= 1U << i;
  }
  return set;
}

}  // namespace holdfast
