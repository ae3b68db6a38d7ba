#include "core/engine/chunked_requests.h"

#include <algorithm>
#include <span>
#include <vector>

#include "core/engine/requests.h"
#include "core/events/acl_check.h"
#include "core/state/request.h"

namespace holdfast {

namespace {

bool can_be_put_off(const Request& r) {
  return r.may_block && !r.s().service.loading && r.c.reply_mode == ReplyMode::kOn;
}

}  // namespace

size_t put_off_rest(Request& r) {
  constexpr size_t kEnd = 1 + kSliceNames;
  if (r.argc() <= kEnd || !can_be_put_off(r)) return r.argc();
  std::vector<std::string_view> argv;
  for (size_t at = kEnd; at < r.argc(); at += kSliceNames) {
    const auto names = r.argv.subspan(at, std::min(kSliceNames, r.argc() - at));
    argv.assign(1, r.argv[0]);
    argv.insert(argv.end(), names.begin(), names.end());
    r.c.slices.add(argv);
  }
  return kEnd;
}

size_t slice_size(const Request& r) { return can_be_put_off(r) ? kSliceNames : SIZE_MAX; }

void put_off_again(Request& r) {
  const std::string_view argv[] = {r.command.name};
  r.c.slices.add(argv);
}

void run_slice(Turn& t) {
  if (t.s.unfinished.empty()) return;
  const ConnId id = t.s.unfinished.front();
  t.s.unfinished.pop_front();
  Conn* c = t.s.conns.find(id);
  if (c == nullptr || c->closing) return;
  t.actor = id;
  mark_dirty(t, *c);
  c->running = true;
  const size_t answered = c->out.size();
  bool refused = false;
  c->slices.take_first([&](std::span<const std::string_view> argv) {
    Request r{t, *c, *c->last_command, argv, Reply(c->out, c->protocol), true};
    refused = c->checked && refuse_by_acl(t, *c, r.command, argv, r.reply);  // users may have changed
    refused ? t.s.log.note_rejection(&r.command, c->out.view().substr(answered)) : r.command.handler(r);
  });
  if (refused) c->slices.clear();
  conclude_request(t, *c, answered);
  if (c->slices.count() > 0) {
    t.s.unfinished.push_back(id);
    return;
  }
  t.s.old_buffers.take(c->slices.memory());
  t.fx.wakes.push_back(id);
}

}  // namespace holdfast
