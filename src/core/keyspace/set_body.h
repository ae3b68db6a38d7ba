// A set of texts, in the order of their hashes: see hash_body.h. An entry of type kSet owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "core/keyspace/entry.h"
#include "core/keyspace/hash_body.h"
#include "core/keyspace/value_body.h"

namespace holdfast {

class SetBody final : public ValueBody {
 public:
  static constexpr EntryType kType = EntryType::kSet;

  // `intset_entries`: up to so many members are an intset if all are integers.
  SetBody(uint64_t seed, size_t intset_entries) : members_(seed), intset_entries_(intset_entries) {}

  size_t size() const override { return members_.size(); }
  uint64_t bytes() const override { return sizeof(SetBody) - sizeof(HashBody) + members_.bytes(); }
  std::unique_ptr<ValueBody> copy() const override;
  // As in Redis 7.0, a set that was a hashtable stays one.
  std::string_view encoding() const override { return integers_ ? "intset" : "hashtable"; }
  void check_invariants() const override { members_.check_invariants(); }

  bool free_some() override { return members_.free_some(); }
  bool can_save_in_parts() const override { return true; }
  void begin_save(ElementSink& sink) override { members_.begin_save(sink); }
  bool save_some(size_t count) override { return members_.save_some(count); }
  void end_save() override { members_.end_save(); }
  bool saving() const override { return members_.saving(); }

  bool contains(std::string_view member) const { return members_.find(member).has_value(); }
  // Returns whether the member is new.
  bool add(std::string_view member);
  // Returns false if there is no such member.
  bool erase(std::string_view member) { return members_.erase(member); }

  // Returns a random member of a set that is not empty; `place` and `choice` are random numbers. Chooses
  // among the 16 members behind a random place, because one member may have a wide gap before it. The view
  // is valid until the member is erased.
  std::string_view random_member(uint64_t place, uint64_t choice) const;

  // Calls `f(member)` for all members.
  template <class F>
  void for_each(F f) const {
    members_.for_each([&](std::string_view member, std::string_view) { f(member); });
  }
  // The same, until `f` returns false.
  template <class F>
  void for_each_while(F f) const {
    members_.for_each_while([&](std::string_view member, std::string_view) { return f(member); });
  }
  // See HashBody::scan().
  template <class F>
  uint64_t scan(uint64_t cursor, const size_t& count, F f) const {
    return members_.scan(cursor, count, [&](std::string_view member, std::string_view) { f(member); });
  }

 private:
  HashBody members_;  // with empty values
  size_t intset_entries_;
  bool integers_ = true;
};

}  // namespace holdfast
