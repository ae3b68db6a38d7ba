#include "client/api/slots.h"

#include <iterator>
#include <utility>

#include "client/base/random.h"

namespace holdfast {

std::shared_ptr<client::TicketSlot> Slots::take(const std::string& key, size_t servers) {
  const auto found = idle_.find(key);
  if (found == idle_.end()) {
    std::string name;
    for (int i = 0; i < 32; ++i) name += "0123456789abcdef"[client::random_below(16)];
    return std::make_shared<client::TicketSlot>(std::move(name), servers);
  }
  const Idle idle = std::move(found->second.back());
  found->second.pop_back();
  if (found->second.empty()) idle_.erase(found);
  --count_;
  return idle.slot;
}

// Forgets any slot beyond the limit: which one hardly matters.
void Slots::put(const std::string& key, std::shared_ptr<client::TicketSlot> slot,
                std::shared_ptr<void> last) {
  idle_[key].push_back({std::move(slot), std::move(last)});
  if (++count_ <= kMost) return;
  const auto any =
      idle_.begin()->first == key && idle_.size() > 1 ? std::next(idle_.begin()) : idle_.begin();
  const Idle dropped = std::move(any->second.front());
  any->second.erase(any->second.begin());
  if (any->second.empty()) idle_.erase(any);
  --count_;
}

// A dropped user of a slot may look at this object no more.
void Slots::clear() {
  const auto dropped = std::exchange(idle_, {});
  const auto kept = std::exchange(kept_, {});
  count_ = 0;
}

}  // namespace holdfast
