// The slots of a client that no acquisition uses at present, by key. An acquisition takes one, or makes a
// new one, and gives it back. So the attempts of one caller after another have rising numbers of one slot,
// and servers forget those before. For the loop's thread.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client/algorithm/ticket_slot.h"

namespace holdfast {

class Slots {
 public:
  // Beyond so many slots one of them is forgotten; the next acquisition of its key makes a new one.
  static constexpr size_t kMost = 1024;

  // Returns a slot for the key on so many servers. Its name is unguessable: any client that knows an owner
  // can release it.
  std::shared_ptr<client::TicketSlot> take(const std::string& key, size_t servers);
  // `last`: the last user of the slot, which may still repeat its release to servers that have not
  // answered. It is dropped when the slot is taken: the next attempt says that the last one has ended.
  void put(const std::string& key, std::shared_ptr<client::TicketSlot> slot, std::shared_ptr<void> last);
  // Keeps a user of a slot that is given up but still has a hold, until forget().
  void keep(std::shared_ptr<void> user) { kept_.insert(std::move(user)); }
  void forget(const std::shared_ptr<void>& user) { kept_.erase(user); }
  void clear();

 private:
  struct Idle {
    std::shared_ptr<client::TicketSlot> slot;
    std::shared_ptr<void> last;
  };
  std::map<std::string, std::vector<Idle>> idle_;  // no entry is empty
  size_t count_ = 0;
  std::set<std::shared_ptr<void>> kept_;
};

}  // namespace holdfast
