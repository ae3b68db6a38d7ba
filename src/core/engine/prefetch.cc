#include "core/engine/prefetch.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/codec/request_batch.h"
#include "core/command/command.h"
#include "core/keyspace/keyspace.h"
#include "core/state/conn.h"
#include "core/state/context.h"
#include "core/state/tokens.h"

namespace holdfast {

namespace {

// A smaller keyspace is in the caches of the processor anyway.
constexpr uint64_t kNearBytes = uint64_t{2} << 20U;

// The keys of a batch, and whether their entries will change.
class Keys {
 public:
  struct Item {
    Key key;
    Handle entry;
    bool changes;
  };

  explicit Keys(const Keyspace& keyspace) : keyspace_(keyspace) {}

  void add(std::string_view bytes, bool changes) {
    if (count_ < items_.size()) items_[count_++] = {keyspace_.key(bytes), 0, changes};
  }
  std::span<Item> items() { return {items_.data(), count_}; }

 private:
  static constexpr size_t kMost = 32;  // more would displace each other from the nearest cache
  const Keyspace& keyspace_;
  std::array<Item, kMost> items_;
  size_t count_ = 0;
};

// Adds the keys that the row of the command names; of a script, the first.
void add_keys(Keys& keys, const Command& command, std::span<const std::string_view> argv) {
  const bool movable = command.has(kMovableKeys);
  const bool changes = movable || command.has(kWrite);
  const size_t first = movable ? key_count_of(command).at + 1 : static_cast<size_t>(command.first_key);
  if (first == 0 || first >= argv.size()) return;
  keys.add(argv[first], changes);
  if (movable || command.last_key == command.first_key) return;
  for (size_t i = first + static_cast<size_t>(command.key_step); i < argv.size();
       i += static_cast<size_t>(command.key_step))
    keys.add(argv[i], changes);
}

}  // namespace

void prefetch_keys(const EngineState& s, const Conn& c, const RequestBatch& batch) {
  const Keyspace& keyspace = *s.dbs[c.db];
  if (keyspace.used_bytes() < kNearBytes) return;
  Keys keys(keyspace);
  for (size_t i = 0; i < batch.size(); ++i) {
    if (const Command* command = find_row(batch.argv(i))) add_keys(keys, *command, batch.argv(i));
  }
  for (Keys::Item& item : keys.items()) keyspace.prefetch_place(item.key);
  for (Keys::Item& item : keys.items()) {
    item.entry = keyspace.prefetch_entry(item.key);
    if (item.entry == 0 && item.changes) s.tokens.prefetch(item.key);
  }
  for (Keys::Item& item : keys.items()) {
    if (item.entry != 0 && item.changes) keyspace.prefetch_timer(item.entry);
  }
}

}  // namespace holdfast
