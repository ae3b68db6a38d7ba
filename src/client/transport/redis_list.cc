// LOCKS LIST on Redis, which has no list of locks: one step of SCAN on one master after the other, and a
// script for each key found. The memory is that of one page.
#include <utility>

#include "client/transport/connection.h"
#include "client/transport/redis_link_core.h"
#include "core/codec/hold_codec.h"

namespace holdfast::client {
namespace {

using Kind = Value::Kind;

Value bulk(std::string text) { return {Kind::kBulk, 0, std::move(text), {}}; }

// Whether the answer means that the key is not a lock or cannot be one: its token key would be in another
// slot, or has another type.
bool is_no_lock(const Value& value) {
  return value.kind == Kind::kNull || has_code(value, "CROSSSLOT ") || has_code(value, "WRONGTYPE ");
}

}  // namespace

struct RedisCore::Listing {
  Link::Answered done;
  TimeMs deadline;
  std::string script;
  std::string next = "0";  // cursor
  Argv keys;
  std::vector<Value> rows;  // one for each key: an array if the key is a lock
  size_t open = 0;          // requested rows without an answer
  Value failure{Kind::kNull, 0, {}, {}};
};

void RedisCore::list(const Translation& what, DurationMs timeout, Link::Answered done) {
  const auto page = std::make_shared<Listing>();
  page->done = std::move(done);
  page->deadline = Loop::now() + timeout;
  page->script = what.call.script;
  // If another node has the slot now, it has at least the same keys: SCAN starts there from the beginning.
  const bool same = what.from.node == nodes_.owner_of(what.from.slot);
  Argv scan{"SCAN", same ? what.from.scan : "0"};
  scan.insert(scan.end(), what.call.argv.begin(), what.call.argv.end());
  nodes_.ask(what.from.slot, std::move(scan), timeout,
             [this, page, slot = what.from.slot](const Value& value, const RedisNodes::Spot& at) {
               if (!closed_) on_scan(page, slot, value, at);
             });
}

void RedisCore::on_scan(const ListingPtr& page, int slot, const Value& value, RedisNodes::Spot at) {
  if (value.kind != Kind::kArray || value.elements.size() != 2) return page->done(value);
  const std::string& scan = value.elements[0].text;
  if (scan != "0") {
    page->next = text_of({slot, at.node->text(), scan});
  } else if (const auto next = nodes_.next_owner(slot)) {
    page->next = text_of({*next, "", "0"});
  }
  for (const Value& key : value.elements[1].elements) page->keys.push_back(key.text);
  page->rows.resize(page->keys.size());
  if (page->keys.empty())
    return page->done({Kind::kArray, 0, {}, {bulk(page->next), {Kind::kArray, 0, {}, {}}}});
  ask_row(page, 0);  // alone, so that the server knows the script for the other rows
}

void RedisCore::ask_row(const ListingPtr& page, size_t i) {
  const std::string& key = page->keys[i];
  ++page->open;
  run(std::make_shared<const ScriptCall>(ScriptCall{page->script, {key, token_key(key)}, {}}),
      left_until(page->deadline), [this, page, i](const Value& value, RedisNodes::Spot) {
        if (!closed_) on_row(page, i, value);
      });
}

void RedisCore::on_row(const ListingPtr& page, size_t i, const Value& value) {
  if (value.kind == Kind::kArray) {
    page->rows[i] = value;
  } else if (!is_no_lock(value)) {
    page->failure = value;
  }
  if (i == 0 && page->failure.kind == Kind::kNull) {
    for (size_t other = 1; other < page->keys.size(); ++other) ask_row(page, other);
  }
  if (--page->open > 0) return;
  if (page->failure.kind != Kind::kNull) return page->done(page->failure);
  Value rows{Kind::kArray, 0, {}, {}};
  for (Value& row : page->rows) {
    if (row.kind == Kind::kArray) rows.elements.push_back(std::move(row));
  }
  page->done({Kind::kArray, 0, {}, {bulk(page->next), std::move(rows)}});
}

}  // namespace holdfast::client
