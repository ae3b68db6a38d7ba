// Random members of a set: SPOP SRANDMEMBER.
#include <string>
#include <string_view>
#include <vector>

#include "core/base/parse.h"
#include "core/command/handlers.h"
#include "core/events/change_events.h"
#include "core/handlers/body_access.h"
#include "core/handlers/random_choice.h"
#include "core/keyspace/set_body.h"
#include "core/state/conn.h"
#include "core/state/request.h"
#include "core/values/body_changes.h"
#include "core/values/set_changes.h"

namespace holdfast {

namespace {

using Members = std::vector<std::string_view>;

struct SetSource {
  using Element = std::string_view;
  const SetBody& set;
  size_t size() const { return set.size(); }
  template <class F>
  void for_each(F f) const {
    set.for_each(f);
  }
  std::string_view pick(RandomNumbers& random) const {
    return set.random_member(random.next(), random.next());
  }
  static const char* id(std::string_view member) { return member.data(); }  // its place in memory
};

// Removes members that are views of the set.
void pop(Request& r, BodyTarget<SetBody>& target, const Members& members) {
  if (members.size() == target.body->size()) {
    remove_key(r.ctx, {r.c.db, target.f}, End::kDeleted);
  } else {
    const std::vector<std::string> copies(members.begin(), members.end());
    remove_members<SetBody>(r.ctx, {r.c.db, target.f}, Members(copies.begin(), copies.end()), r.c.id);
  }
  notify(r.ctx, kNotifySet, "spop", r.c.db, r.arg(1));
  if (!find_live(r.ctx, r.c.db, target.key)) notify(r.ctx, kNotifyGeneric, "del", r.c.db, r.arg(1));
}

void pop_many(Request& r) {
  const auto count = parse_int(r.arg(2));
  if (!count || *count < 0) return r.reply.error("ERR value is out of range, must be positive");
  auto target = find_body_to_write<SetBody>(r, r.arg(1));
  if (!target) return;
  if (target->body == nullptr || *count == 0) return r.reply.set(0);
  RandomNumbers random(r.s().config);
  const Members members = choose(SetSource{*target->body}, static_cast<size_t>(*count), random);
  r.reply.set(members.size());
  for (const std::string_view member : members) r.reply.bulk(member);
  pop(r, *target, members);
}

// Replies with members that may repeat. Ends early if the reply is larger than the client may have.
void reply_repeated(Request& r, const SetBody& set, uint64_t count) {
  if (refuse_repetitions(r, count)) return;
  RandomNumbers random(r.s().config);
  r.reply.array(count);
  for (; count > 0 && !r.c.out.overflowed(); --count) {
    r.reply.bulk(set.random_member(random.next(), random.next()));
  }
}

void reply_many(Request& r) {
  const auto count = read_random_count(r, 2);
  if (!count) return;
  const auto set = find_body_to_read<SetBody>(r, r.arg(1));
  if (!set) return;
  if (*set == nullptr || *count == 0) return r.reply.array(0);
  if (*count < 0) return reply_repeated(r, **set, static_cast<uint64_t>(-*count));
  RandomNumbers random(r.s().config);
  const Members members = choose(SetSource{**set}, static_cast<size_t>(*count), random);
  r.reply.array(members.size());
  for (const std::string_view member : members) r.reply.bulk(member);
}

}  // namespace

void cmd_spop(Request& r) {
  if (r.argc() > 3) return reply_syntax_error(r);
  if (r.argc() == 3) return pop_many(r);
  auto target = find_body_to_write<SetBody>(r, r.arg(1));
  if (!target) return;
  if (target->body == nullptr) return r.reply.null();
  RandomNumbers random(r.s().config);
  const std::string_view member = target->body->random_member(random.next(), random.next());
  r.reply.bulk(member);
  pop(r, *target, {member});
}

void cmd_srandmember(Request& r) {
  if (r.argc() > 3) return reply_syntax_error(r);
  if (r.argc() == 3) return reply_many(r);
  const auto set = find_body_to_read<SetBody>(r, r.arg(1));
  if (!set) return;
  if (*set == nullptr) return r.reply.null();
  RandomNumbers random(r.s().config);
  r.reply.bulk((*set)->random_member(random.next(), random.next()));
}

}  // namespace holdfast
