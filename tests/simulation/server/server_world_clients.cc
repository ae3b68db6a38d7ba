// What clients and the network do, beside plain requests.
#include "server_world.h"

namespace holdfast::simulation {

void ServerWorld::act_on_client(const std::string& verb, const std::vector<std::string>& words) {
  if (process_ == nullptr || words.empty()) return;
  Client& client = connected(static_cast<int>(number(words, 0)));
  if (verb == "raw" && words.size() > 1) client.send_bytes(words[1]);
  if (verb == "cut" && words.size() > 2) {
    ++counts_.requests;
    client.send_part({words.begin() + 2, words.end()}, number(words, 1));
  }
  if (verb == "room") client.socket().room = number(words, 1);
  if (verb == "read") client.socket().room = SIZE_MAX;
  if (verb == "reset") client.socket().reset = true;
  Loop::get().poke();
}

// `appendfsync` changes in the middle of a transaction, too.
void ServerWorld::note_options() {
  const std::string& now = process_->options().appendfsync;
  if (!fsync_.empty() && fsync_ != now) oracle_.fsync_changed(scheduler_.now_us());
  fsync_ = now;
}

bool ServerWorld::recovers() const {
  return process_ != nullptr && process_->loaded() && is_recovering(*process_->engine());
}

}  // namespace holdfast::simulation
