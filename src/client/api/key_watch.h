// The subscription to the events of a key (docs/protocol.md: Events of a key) at its servers, as long as
// the object exists. For the loop's thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "client/transport/transport.h"

namespace holdfast {

class ClientCore;

class KeyWatch {
 public:
  // `on_event(message)`: see Link::watch(). `client` must outlive this object.
  KeyWatch(ClientCore& client, const std::vector<size_t>& servers, const std::string& key,
           const std::function<void(const std::string& message)>& on_event);
  ~KeyWatch();
  KeyWatch(const KeyWatch&) = delete;
  KeyWatch& operator=(const KeyWatch&) = delete;

 private:
  ClientCore& client_;
  const std::vector<size_t> servers_;
  std::vector<client::Link::Watch> watches_;  // one for each server
};

}  // namespace holdfast
