// A slot: the name under which one caller at a time acquires a key, again and again. Each attempt to
// acquire has the next number. A request of attempt n tells a server that all attempts before n have ended,
// so that nothing that arrives late revives them. Here is what outlives an attempt.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/algorithm/ticket_requests.h"

namespace holdfast::client {

// The attempts of other slots that are known to have ended: the newest one of each slot. The client relays
// them, because their UNLOCK may not have reached every server. No attempt is named to a server that is
// known to know it.
class OverList {
 public:
  // `own` is the slot of this client, whose attempts are not listed.
  OverList(std::string own, size_t servers) : own_(std::move(own)), servers_(servers) {}

  // A server named these attempts, newest first.
  void learn(size_t server, const std::vector<std::string>& owners);
  // Returns the newest attempts that the server may not know, newest first, at most kMostOver; they count
  // as known there from now on.
  std::vector<std::string> take_for(size_t server);
  // Requests to the server may be lost, or the server has restarted: it may know none of them.
  void forget(size_t server);

  static constexpr size_t kMostSlots = 32;  // then the oldest ones are forgotten

 private:
  struct Entry {
    std::string owner;
    std::vector<bool> known;  // by server
  };
  void learn_one(size_t server, const std::string& owner);

  std::string own_;
  size_t servers_;
  std::vector<Entry> entries_;  // oldest first
};

struct TicketSlot {
  TicketSlot(std::string slot_name, size_t servers)
      : name(std::move(slot_name)), over(name, servers), told(servers, true) {}

  std::string name;           // unguessable where clients must not end each other's locks
  uint64_t attempt = 0;       // the number of the last attempt
  uint64_t floor = 0;         // the largest ticket that any server has told
  uint64_t token = 0;         // the largest token that any server has told
  double parkings = 0;        // each doubles the pause before a return; an acquisition ends an eighth
  bool clock_is_late = true;  // the last ticket was too small: the next one is provisional at first
  OverList over;
  std::vector<bool> told;  // by server: it knows that the last attempt has ended

  std::string owner() const { return owner_of(name, attempt); }
};

}  // namespace holdfast::client
