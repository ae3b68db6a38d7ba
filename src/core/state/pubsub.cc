// Changes the index of subscriptions.
#include "core/state/pubsub.h"

#include "core/state/conn.h"

namespace holdfast {

void PubSub::add(Names& names, const std::string& name, Conn& c) {
  const auto [it, made] = names.try_emplace(name);
  it->second.emplace(c.id.serial, c.id);
  bytes += bytes_of_name(name) * (made ? 2 : 1);
  c.name_bytes += bytes_of_name(name);
}

void PubSub::remove(Names& names, const std::string& name, Conn& c) {
  const auto it = names.find(name);
  it->second.erase(c.id.serial);
  const bool last = it->second.empty();
  if (last) names.erase(it);
  bytes -= bytes_of_name(name) * (last ? 2 : 1);
  c.name_bytes -= bytes_of_name(name);
}

}  // namespace holdfast
