// The owners that the proxy's holds have on the servers. Each acquisition has one of its own: the value or
// owner that the client gave, a mark, random characters, and the number of the attempt, as in
// "worker-1~Xk93hQw02LmZ.1". So two clients that give the same value exclude one another, a release
// reaches one acquisition and never a later one, and each proxy reads the client's value from the owner.
#pragma once

#include <string>
#include <string_view>

#include "client/base/random.h"

namespace holdfast::proxy {

inline constexpr char kMark = '~';
inline constexpr size_t kRandomChars = 12;
// The most bytes of a value: mark, random characters and attempt number follow, and a server's default
// limit of an owner is 512 bytes.
inline constexpr size_t kMostValueBytes = 480;

// The name of a new acquisition: a slot (client/algorithm/ticket_slot.h).
inline std::string new_slot(std::string_view value) {
  static constexpr std::string_view kDigits =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string name(value);
  name += kMark;
  for (size_t i = 0; i < kRandomChars; ++i) name += kDigits[client::random_below(kDigits.size())];
  return name;
}

// Whether a proxy has made the owner.
inline bool is_of_proxy(std::string_view owner) {
  const size_t mark = owner.rfind(kMark);
  if (mark == std::string_view::npos) return false;
  const std::string_view rest = owner.substr(mark + 1);
  const size_t dot = rest.find('.');
  if (dot != kRandomChars || dot + 1 == rest.size()) return false;
  return rest.find_first_not_of("0123456789", dot + 1) == std::string_view::npos;
}

// The client's value in the owner of a hold. An owner that no proxy made is the value itself.
inline std::string_view value_in(std::string_view owner) {
  return is_of_proxy(owner) ? owner.substr(0, owner.rfind(kMark)) : owner;
}

// Whether the owner is an attempt of this slot.
inline bool is_attempt_of(std::string_view owner, std::string_view slot) {
  return owner.size() > slot.size() && owner.starts_with(slot) && owner[slot.size()] == '.';
}

}  // namespace holdfast::proxy
