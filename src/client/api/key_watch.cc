#include "client/api/key_watch.h"

#include "client/api/client_core.h"

namespace holdfast {

KeyWatch::KeyWatch(ClientCore& client, const std::vector<size_t>& servers, const std::string& key,
                   const std::function<void(const std::string& message)>& on_event)
    : client_(client), servers_(servers) {
  for (const size_t server : servers_)
    watches_.push_back(client_.link(server).watch("__lock__:" + key, on_event));
}

KeyWatch::~KeyWatch() {
  for (size_t i = 0; i < servers_.size(); ++i) client_.link(servers_[i]).unwatch(watches_[i]);
}

}  // namespace holdfast
