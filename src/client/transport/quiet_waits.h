// Requests that wait at a server (LOCK ... WAIT ms ASYNC QUIET), all over one connection, which opens with
// the first of them. Their outcomes come as pushes, which name key and owner.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/transport/pipeline.h"
#include "client/transport/transport.h"

namespace holdfast::client {

class QuietWaits {
 public:
  QuietWaits(Loop& loop, const Address& address);

  // The functions of Link.
  bool are_known() const;
  void wait(Link::Wait id, const std::vector<std::string>& argv, Link::Done done);
  void end(Link::Wait id);
  void ask(const std::vector<std::string>& argv, DurationMs timeout, Link::Answered done) {
    pipeline_.ask(argv, timeout, std::move(done));
  }

 private:
  using Name = std::pair<std::string, std::string>;  // key and owner
  struct Call {
    Name name;
    Link::Done done;
  };

  void answer(Link::Wait id, const Value& value);
  void take_push(const Value& push);
  void finish(Link::Wait id, const Reply& reply);
  void lose_all(const std::string& why);

  std::map<Link::Wait, Call> calls_;
  std::map<Name, Link::Wait> ids_;
  std::shared_ptr<const bool> life_ = std::make_shared<bool>(true);  // expires with this object
  TimeMs unknown_until_{};
  Pipeline pipeline_;  // last: its callbacks use the other members
};

}  // namespace holdfast::client
