// Changes of sets.
#include "core/values/set_changes.h"

#include "core/base/config.h"
#include "core/events/record_changes.h"
#include "core/values/body_changes.h"

namespace holdfast {

std::unique_ptr<SetBody> new_set(const EngineState& s) {
  return std::make_unique<SetBody>(s.config.hash_seed, s.config.limits.set_intset_entries);
}

size_t add_members(Context& ctx, KeyRef k, const Key& key, std::span<const std::string_view> members,
                   ConnId client) {
  SetBody& set = body_to_change<SetBody>(ctx, k, key, client, [&] { return new_set(ctx.s); });
  const size_t added = change_body(ctx.keys(k.db), set, [&] {
    size_t n = 0;
    for (const std::string_view member : members) n += set.add(member) ? 1 : 0;
    return n;
  });
  if (added == 0) return 0;
  journal_members(ctx, Record::kAddMembers, k.db, key.bytes, members);
  end_body_change(ctx, k, client);
  return added;
}

}  // namespace holdfast
