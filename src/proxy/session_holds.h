// The SESSION holds of the proxy's clients: which holds end with which connection.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/types.h"

namespace holdfast::proxy {

class SessionHolds {
 public:
  using Name = std::pair<std::string, std::string>;  // key and owner on the servers

  // From this size on the holds of a connection that have ended are looked for.
  static constexpr size_t kFew = 128;

  // `end`: then the hold has ended on the servers, unless another proxy has renewed it.
  void add(uint64_t conn, const Name& name, TimeMs end, TimeMs now) {
    Session& session = sessions_[conn];
    session.holds.insert_or_assign(name, end);
    if (session.holds.size() < session.look_at) return;
    std::erase_if(session.holds, [now](const auto& hold) { return is_due(hold.second, now); });
    session.look_at = std::max(kFew, 2 * session.holds.size());
  }
  // A hold of the connection has another end. No effect if it is no SESSION hold.
  void renew(uint64_t conn, const Name& name, TimeMs end) {
    const auto session = sessions_.find(conn);
    if (session == sessions_.end()) return;
    const auto hold = session->second.holds.find(name);
    if (hold != session->second.holds.end()) hold->second = end;
  }
  void remove(uint64_t conn, const Name& name) {
    const auto session = sessions_.find(conn);
    if (session != sessions_.end()) session->second.holds.erase(name);
  }
  // The connection has ended: returns its holds.
  std::vector<Name> take(uint64_t conn) {
    std::vector<Name> names;
    const auto session = sessions_.extract(conn);
    if (!session) return names;
    for (const auto& [name, end] : session.mapped().holds) names.push_back(name);
    return names;
  }
  size_t count(uint64_t conn) const {
    const auto session = sessions_.find(conn);
    return session == sessions_.end() ? 0 : session->second.holds.size();
  }

 private:
  struct Session {
    std::map<Name, TimeMs> holds;
    size_t look_at = kFew;
  };
  std::map<uint64_t, Session> sessions_;  // by the serial of the connection
};

}  // namespace holdfast::proxy
