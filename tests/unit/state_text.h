// The whole persistent state of an engine as text, in an order that does not depend on its history, so
// that two engines can be compared.
#pragma once

#include <map>
#include <string>

#include "core/base/score.h"
#include "core/codec/hold_codec.h"
#include "core/engine/engine.h"
#include "core/engine/engine_parts.h"
#include "core/events/record_changes.h"
#include "core/keyspace/list_body.h"
#include "core/keyspace/set_body.h"
#include "core/keyspace/zset_body.h"
#include "core/lock/keys.h"
#include "core/state/library_store.h"
#include "core/values/hash_changes.h"

namespace holdfast {

inline std::string hold_text(const SavedHold& h) {
  return " token " + std::to_string(h.token.value) + " ttl " + std::to_string(h.ttl.count) + " since " +
         std::to_string(h.held_since_ms) + " delay " + std::to_string(h.delay.count) + " lease " +
         std::to_string(h.lease) + (h.session ? " session" : "") +
         (h.note.empty() ? "" : " note '" + h.note + "'");
}

inline std::string entry_text(const EngineState& s, DbIndex place, const Keyspace::Found& f,
                              const Now& now) {
  const Entry& e = *f;
  const std::string until = " until " + std::to_string(saved_deadline(value_deadline_of(e), now));
  if (type_of(e) == EntryType::kString) {
    const SavedHold h =
        saved_hold(token_of(e), ttl_of(e), held_since(e), attachment_of(s.attachments, place, f), now);
    return "string '" + std::string(value_of(e)) + "'" + until + hold_text(h);
  }
  if (type_of(e) == EntryType::kList) {
    std::string text = "list" + until;
    for (auto at = body_of<ListBody>(e).first(); at.valid(); at.next()) text.append(" ").append(at.get());
    return text;
  }
  std::map<std::string, std::string> parts;
  if (type_of(e) == EntryType::kLock) {
    lock_body_of(e)->for_each([&](const Holder& holder) {
      const SavedHolder h = saved_holder(holder, now);
      parts[std::string(h.owner)] = " of " + std::to_string(h.capacity.count) + " until " +
                                    std::to_string(h.deadline_ms) + hold_text(h.hold);
    });
  } else if (type_of(e) == EntryType::kSet) {
    body_of<SetBody>(e).for_each([&](std::string_view member) { parts[std::string(member)] = "member"; });
  } else if (type_of(e) == EntryType::kZset) {
    body_of<ZsetBody>(e).for_each([&](std::string_view member, double score) {
      parts[std::string(member)] = format_score(score + 0.0);  // -0 becomes 0, as in a packed one
    });
  } else {
    const HashView hash(e);
    hash.for_each([&](std::string_view field, std::string_view value) {
      const TimeMs deadline = hash.deadline_of(field);
      if (is_due(deadline, now.mono)) return;  // whether it is erased already depends on the look-ups
      parts[std::string(field)] = value;
      if (deadline == kNever) return;
      parts[std::string(field)] += " until " + std::to_string(saved_deadline(deadline, now));
    });
  }
  std::string text = type_of(e) == EntryType::kLock ? "lock" : std::string(type_name(type_of(e))) + until;
  for (const auto& [name, part] : parts)
    text.append(" [").append(name).append(": ").append(part).append("]");
  return text;
}

inline std::string state_text(Engine& engine, const Now& now) {
  EngineState& s = engine.state();
  std::string text;
  for (const std::string_view code : library_codes(s)) text.append("library ").append(code).append("\n");
  for (DbIndex number = 0; number < kDatabases; ++number) {
    const DbIndex place = s.db_at[number];
    Keyspace& keys = *s.dbs[place];
    std::map<std::string, std::string> entries;
    keys.scan(0, SIZE_MAX, [&](const Entry& e) {
      if (type_of(e) == EntryType::kNone) return;
      entries[std::string(key_of(e))] = entry_text(s, place, keys.find(keys.key(key_of(e))), now);
    });
    for (const auto& [key, entry] : entries) {
      text += std::to_string(number) + " '" + key + "' " + entry + "\n";
    }
  }
  return text + "beside: " + side_records(s, now);
}

}  // namespace holdfast
