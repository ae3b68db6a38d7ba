// Changes of lists.
#include "core/values/list_changes.h"

#include "core/events/record_changes.h"
#include "core/values/body_changes.h"

namespace holdfast {

namespace {

template <class Change>
void change_list(Context& ctx, KeyRef k, Change change) {
  ListBody& list = body_of<ListBody>(*k);
  change_body(ctx.keys(k.db), list, [&] {
    change(list);
    return true;
  });
}

}  // namespace

void push_elements(Context& ctx, KeyRef k, const Key& key, ListEnd end,
                   std::span<const std::string_view> elements, ConnId client) {
  body_to_change<ListBody>(ctx, k, key, client, [] { return std::make_unique<ListBody>(); });
  change_list(ctx, k, [&](ListBody& list) {
    for (const std::string_view element : elements) list.push(end, element);
  });
  journal_pushed_elements(ctx, k.db, key.bytes, end, elements);
  end_body_change(ctx, k, client);
}

void set_element(Context& ctx, KeyRef k, size_t index, std::string_view element, ConnId client) {
  change_list(ctx, k, [&](ListBody& list) { list.set(index, element); });
  journal_element(ctx, Record::kSetElement, k.db, key_of(*k), index, element);
  end_body_change(ctx, k, client);
}

void insert_element(Context& ctx, KeyRef k, size_t index, std::string_view element, ConnId client) {
  change_list(ctx, k, [&](ListBody& list) { list.insert(index, element); });
  journal_element(ctx, Record::kInsertElement, k.db, key_of(*k), index, element);
  end_body_change(ctx, k, client);
}

void erase_elements(Context& ctx, KeyRef k, size_t index, size_t count, ConnId client) {
  const bool all = count == body_of<ListBody>(*k).size();
  change_list(ctx, k, [&](ListBody& list) { list.erase(index, count); });
  if (!all) journal_erased_elements(ctx, k.db, key_of(*k), index, count);
  end_body_change(ctx, k, client);
}

size_t erase_equal_elements(Context& ctx, KeyRef k, ListEnd from, size_t most, std::string_view element,
                            ConnId client) {
  size_t erased = 0;
  change_list(ctx, k, [&](ListBody& list) { erased = list.erase_equal(element, from, most); });
  if (erased == 0) return 0;
  if (body_of<ListBody>(*k).size() > 0) {
    journal_erased_equal_elements(ctx, k.db, key_of(*k), from, most, element);
  }
  end_body_change(ctx, k, client);
  return erased;
}

}  // namespace holdfast
