// Changes of hashes, and their conversion from the packed to the big form.
#include "core/values/hash_changes.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "core/base/config.h"
#include "core/events/record_changes.h"
#include "core/keyspace/keyspace.h"
#include "core/lock/keys.h"
#include "core/lock/value_expiry.h"
#include "core/state/context.h"
#include "core/state/key_ref.h"
#include "core/values/body_changes.h"

namespace holdfast {

namespace {

// Writes a value over the old one if both have the same size. Returns false if it changed nothing.
bool overwrite(std::string_view packed, std::string_view field, std::string_view value) {
  const auto old = PackedHash(packed).find(field);
  if (!old || old->size() != value.size()) return false;
  if (!value.empty()) std::memcpy(const_cast<char*>(old->data()), value.data(), value.size());
  return true;
}

bool fit_packed(const Limits& limits, std::span<const std::string_view> pairs) {
  return std::all_of(pairs.begin(), pairs.end(),
                     [&](std::string_view text) { return text.size() <= limits.hash_packed_value_bytes; });
}

// Sets the fields of a packed hash. Returns the number of new fields, or nullopt if a packed hash cannot
// have so many.
std::optional<size_t> set_packed(const Limits& limits, PackedHashEditor& packed,
                                 std::span<const std::string_view> pairs) {
  size_t size = PackedHash(packed.bytes()).size();
  size_t made = 0;
  for (size_t i = 0; i < pairs.size() && size <= limits.hash_packed_entries; i += 2) {
    if (!packed.set(pairs[i], pairs[i + 1])) continue;
    ++made;
    ++size;
  }
  if (size > limits.hash_packed_entries) return std::nullopt;
  return made;
}

std::unique_ptr<ValueBody> unpack(uint64_t seed, std::string_view packed) {
  auto body = std::make_unique<HashBody>(seed);
  PackedHash(packed).for_each(
      [&](std::string_view field, std::string_view value) { body->set(field, value); });
  return body;
}

// Gives a packed hash the big form. The content stays, so this needs no journal record.
void make_big(Context& ctx, KeyRef k, const Key& key) {
  const ValueBody* const body =
      place_body(unpack(ctx.s.config.hash_seed, value_of(*k)),
                 [&](std::string_view bytes) { place_value(ctx, k, key, EntryType::kBigHash, bytes); });
  ctx.keys(k.db).add_body_growth(static_cast<int64_t>(body->bytes()));
}

// Does the work of put_value() for a value that was changed in place.
void record_set(Context& ctx, KeyRef k, ConnId client) {
  set_held_since(*k, ctx.now.mono);
  record_part_change(ctx, k, client);
}

size_t set_in_body(Context& ctx, KeyRef k, std::span<const std::string_view> pairs, ConnId client) {
  HashBody& body = *hash_body_of(*k);
  const size_t made = change_body(ctx.keys(k.db), body, [&] {
    size_t n = 0;
    for (size_t i = 0; i < pairs.size(); i += 2) n += body.set(pairs[i], pairs[i + 1]) ? 1 : 0;
    return n;
  });
  journal_fields(ctx, k.db, key_of(*k), pairs);
  follow_fields(ctx, k);
  record_set(ctx, k, client);
  return made;
}

template <class Hash>
size_t erase_each(Hash& hash, std::span<const std::string_view> fields) {
  size_t n = 0;
  for (const std::string_view field : fields) n += hash.erase(field) ? 1 : 0;
  return n;
}

size_t erase_in_body(Keyspace& keys, const Entry& e, std::span<const std::string_view> fields) {
  HashBody& body = *hash_body_of(e);
  return change_body(keys, body, [&] { return erase_each(body, fields); });
}

}  // namespace

size_t set_fields(Context& ctx, KeyRef k, const Key& key, std::span<const std::string_view> pairs,
                  ConnId client) {
  assert(!k || is_hash(*k) || type_of(*k) == EntryType::kNone);
  if (k && type_of(*k) == EntryType::kBigHash) return set_in_body(ctx, k, pairs, client);
  const Limits& limits = ctx.s.config.limits;
  const bool small = k && type_of(*k) == EntryType::kHash;
  const std::string_view old = small ? value_of(*k) : std::string_view{};
  if (fit_packed(limits, pairs)) {
    const bool few = PackedHash(old).size() <= limits.hash_packed_entries;
    if (pairs.size() == 2 && few && overwrite(old, pairs[0], pairs[1])) {
      journal_fields(ctx, k.db, key.bytes, pairs);
      record_set(ctx, k, client);
      return 0;
    }
    PackedHashEditor packed(old);
    if (const auto made = set_packed(limits, packed, pairs)) {
      if (!small) {
        put_value(ctx, k, key, EntryType::kHash, packed.bytes(), client);
      } else {
        place_value(ctx, k, key, EntryType::kHash, packed.bytes());
        journal_fields(ctx, k.db, key.bytes, pairs);
        record_part_change(ctx, k, client);
      }
      return *made;
    }
  }
  if (small) {
    make_big(ctx, k, key);
  } else {
    put_body(ctx, k, key, EntryType::kBigHash, std::make_unique<HashBody>(ctx.s.config.hash_seed), client);
  }
  return set_in_body(ctx, k, pairs, client);
}

size_t erase_fields(Context& ctx, KeyRef k, const Key& key, std::span<const std::string_view> fields,
                    ConnId client) {
  assert(k && is_hash(*k));
  const bool big = type_of(*k) == EntryType::kBigHash;
  PackedHashEditor packed(big ? std::string_view{} : value_of(*k));
  const size_t erased = big ? erase_in_body(ctx.keys(k.db), *k, fields) : erase_each(packed, fields);
  if (erased == 0) return 0;
  if (big ? hash_body_of(*k)->visible() == 0 : packed.bytes().empty()) {
    remove_key(ctx, k, End::kDeleted);
  } else {
    if (!big) place_value(ctx, k, key, EntryType::kHash, packed.bytes());
    journal_erased_fields(ctx, k.db, key.bytes, fields);
    if (big) follow_fields(ctx, k);
    record_set(ctx, k, client);
  }
  return erased;
}

HashBody& big_hash(Context& ctx, KeyRef k, const Key& key) {
  if (type_of(*k) == EntryType::kHash) make_big(ctx, k, key);
  return *hash_body_of(*k);
}

}  // namespace holdfast
