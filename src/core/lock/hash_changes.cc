// Changes of hashes, and their conversion from the packed to the big form.
#include "core/lock/hash_changes.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "core/base/config.h"
#include "core/events/record_changes.h"
#include "core/keyspace/keyspace.h"
#include "core/lock/keys.h"
#include "core/state/context.h"

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

std::unique_ptr<HashBody> unpack(uint64_t seed, std::string_view packed) {
  auto body = std::make_unique<HashBody>(seed);
  PackedHash(packed).for_each(
      [&](std::string_view field, std::string_view value) { body->set(field, value); });
  return body;
}

// Runs a change of a big hash, and reports its growth in bytes to the keyspace.
template <class Change>
size_t change_body(Keyspace& keys, const Entry& e, Change change) {
  HashBody& body = *hash_body_of(e);
  const uint64_t before = body.bytes();
  const size_t n = change(body);
  keys.add_body_growth(static_cast<int64_t>(body.bytes() - before));
  return n;
}

// Does the work of put_value() for a value that was changed in place.
void record_set(Context& ctx, DbIndex db, Keyspace::Found& f, ConnId client) {
  set_held_since(*f, ctx.now.mono);
  record_part_change(ctx, db, f, client);
}

size_t set_in_body(Context& ctx, DbIndex db, Keyspace::Found& f, std::span<const std::string_view> pairs,
                   ConnId client) {
  const size_t made = change_body(ctx.keys(db), *f, [&](HashBody& body) {
    size_t n = 0;
    for (size_t i = 0; i < pairs.size(); i += 2) n += body.set(pairs[i], pairs[i + 1]) ? 1 : 0;
    return n;
  });
  journal_fields(ctx, db, key_of(*f), pairs);
  record_set(ctx, db, f, client);
  return made;
}

template <class Hash>
size_t erase_each(Hash& hash, std::span<const std::string_view> fields) {
  size_t n = 0;
  for (const std::string_view field : fields) n += hash.erase(field) ? 1 : 0;
  return n;
}

size_t erase_in_body(Keyspace& keys, const Entry& e, std::span<const std::string_view> fields) {
  return change_body(keys, e, [&](HashBody& body) { return erase_each(body, fields); });
}

}  // namespace

size_t set_fields(Context& ctx, DbIndex db, const Key& key, Keyspace::Found& f,
                  std::span<const std::string_view> pairs, ConnId client) {
  assert(!f || is_hash(*f) || type_of(*f) == EntryType::kNone);
  if (f && type_of(*f) == EntryType::kBigHash) return set_in_body(ctx, db, f, pairs, client);
  const Limits& limits = ctx.s.config.limits;
  const bool small = f && type_of(*f) == EntryType::kHash;
  const std::string_view old = small ? value_of(*f) : std::string_view{};
  if (fit_packed(limits, pairs)) {
    const bool few = PackedHash(old).size() <= limits.hash_packed_entries;
    if (pairs.size() == 2 && few && overwrite(old, pairs[0], pairs[1])) {
      journal_fields(ctx, db, key.bytes, pairs);
      record_set(ctx, db, f, client);
      return 0;
    }
    PackedHashEditor packed(old);
    if (const auto made = set_packed(limits, packed, pairs)) {
      put_value(ctx, db, key, f, EntryType::kHash, packed.bytes(), client);
      return *made;
    }
  }
  put_big_hash(ctx, db, key, f, unpack(ctx.s.config.hash_seed, old), client);
  return set_in_body(ctx, db, f, pairs, client);
}

size_t erase_fields(Context& ctx, DbIndex db, const Key& key, Keyspace::Found& f,
                    std::span<const std::string_view> fields, ConnId client) {
  assert(f && is_hash(*f));
  const bool big = type_of(*f) == EntryType::kBigHash;
  PackedHashEditor packed(big ? std::string_view{} : value_of(*f));
  const size_t erased = big ? erase_in_body(ctx.keys(db), *f, fields) : erase_each(packed, fields);
  if (erased == 0) return 0;
  if (big ? hash_body_of(*f)->size() == 0 : packed.bytes().empty()) {
    remove_key(ctx, db, f, End::kDeleted);
  } else if (big) {
    journal_erased_fields(ctx, db, key.bytes, fields);
    record_set(ctx, db, f, client);
  } else {
    put_value(ctx, db, key, f, EntryType::kHash, packed.bytes(), client);
  }
  return erased;
}

void put_big_hash(Context& ctx, DbIndex db, const Key& key, Keyspace::Found& f,
                  std::unique_ptr<HashBody> body, ConnId client) {
  HashBody* const owned = body.release();
  put_value(ctx, db, key, f, EntryType::kBigHash, {reinterpret_cast<const char*>(&owned), sizeof owned},
            client);
  ctx.keys(db).add_body_growth(static_cast<int64_t>(owned->bytes()));
}

std::unique_ptr<HashBody> release_big_hash(Keyspace& keys, Keyspace::Found& f) {
  assert(type_of(*f) == EntryType::kBigHash);
  std::unique_ptr<HashBody> body(hash_body_of(*f));
  keys.add_body_growth(-static_cast<int64_t>(body->bytes()));
  f->type = static_cast<uint64_t>(EntryType::kString) & 7U;  // so that rewrite() does not free the body
  keys.rewrite(f, EntryType::kHash, {});
  return body;
}

}  // namespace holdfast
