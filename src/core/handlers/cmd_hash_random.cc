// HRANDFIELD: random fields of a hash.
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/command/handlers.h"
#include "core/handlers/hash_access.h"
#include "core/handlers/random_choice.h"
#include "core/state/request.h"

namespace holdfast {

namespace {

using FieldValue = std::pair<std::string_view, std::string_view>;

// A small hash is listed. In a large one a random place gives a few fields, of which one is chosen.
class HashSource {
 public:
  using Element = FieldValue;

  explicit HashSource(const HashView& hash) : hash_(hash) {}
  size_t size() const { return hash_.size(); }
  template <class F>
  void for_each(F f) const {
    hash_.for_each([&](std::string_view field, std::string_view value) { f(FieldValue(field, value)); });
  }
  FieldValue pick(RandomNumbers& random) const {
    const int attempts = size() > kListed && listed_.empty() ? kAttempts : 0;
    for (int i = 0; i < attempts; ++i) {
      if (const auto found = pick_near(random.next(), random)) return *found;
    }
    const std::vector<FieldValue>& all = listed();  // a small hash, or nearly all fields are hidden
    return all[random.next() % all.size()];
  }
  static const char* id(const FieldValue& pair) { return pair.first.data(); }  // its place in memory

 private:
  static constexpr size_t kListed = 512;
  static constexpr int kAttempts = 64;

  const std::vector<FieldValue>& listed() const {
    if (listed_.empty()) for_each([&](const FieldValue& pair) { listed_.push_back(pair); });
    return listed_;
  }
  // One of the fields at and behind a place; behind the last field comes the first one.
  std::optional<FieldValue> pick_near(uint64_t place, RandomNumbers& random) const {
    constexpr size_t kCandidates = 16;
    std::array<FieldValue, kCandidates> found;
    size_t n = 0;
    const auto take = [&](std::string_view field, std::string_view value) {
      if (n < kCandidates) found[n++] = {field, value};
    };
    const uint64_t next = hash_.scan(place >> (64U - HashBody::kCursorBits), kCandidates, take);
    if (next == 0) hash_.scan(0, kCandidates, take);
    if (n == 0) return std::nullopt;
    return found[random.next() % n];
  }

  HashView hash_;
  mutable std::vector<FieldValue> listed_;
};

void write_field(Request& r, const FieldValue& pair, bool with_values) {
  if (with_values && r.reply.protocol() >= 3) r.reply.array(2);
  r.reply.bulk(pair.first);
  if (with_values) r.reply.bulk(pair.second);
}

void reply_fields(Request& r, const HashView& hash, int64_t count, bool with_values) {
  const auto n = static_cast<uint64_t>(count < 0 ? -count : count);
  if (count < 0 && refuse_repetitions(r, n)) return;
  const HashSource source(hash);
  RandomNumbers random(r.s().config);
  const auto begin = [&](uint64_t size) {
    r.reply.array(with_values && r.reply.protocol() < 3 ? 2 * size : size);
  };
  if (count >= 0) {
    const auto chosen = choose(source, n, random);
    begin(chosen.size());
    for (const FieldValue& pair : chosen) write_field(r, pair, with_values);
    return;
  }
  begin(n);
  for (uint64_t i = 0; i < n && !r.reply.out().overflowed(); ++i) {
    write_field(r, source.pick(random), with_values);
  }
}

}  // namespace

void cmd_hrandfield(Request& r) {
  const auto terms = read_random_terms(r, "WITHVALUES");
  if (!terms) return;
  const auto hash = find_hash_to_read(r);
  if (!hash) return;
  if (hash->size() == 0) return terms->count ? r.reply.array(0) : r.reply.null();
  if (terms->count) return reply_fields(r, *hash, *terms->count, terms->with_values);
  RandomNumbers random(r.s().config);
  r.reply.bulk(HashSource(*hash).pick(random).first);
}

}  // namespace holdfast
