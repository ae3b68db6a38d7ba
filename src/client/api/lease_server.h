// Leases in a Holdfast server, as a LeaseStore: LEASE GRANT, CONFIRM, RENEW and CANCEL. All keys of one
// lease share the lease outcome, so each answer is for all of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/algorithm/lease_core.h"
#include "client/base/value.h"
#include "holdfast/lease.h"

namespace holdfast {

class ClientCore;

// The functions of LeaseStore throw Error if there is no answer, or an error that says nothing about the
// lease.
class ServerLeases final : public ServerLeaseStore {
 public:
  // Throws std::invalid_argument if the client has several servers.
  explicit ServerLeases(std::shared_ptr<ClientCore> client);

  std::vector<Answer> insert(const std::string& lease, const std::vector<Document>& documents,
                             milliseconds ttl) override;
  std::vector<Answer> touch(const std::string& lease, const std::vector<Document>& documents,
                            std::optional<milliseconds> ttl) override;
  std::vector<Answer> remove(const std::string& lease, const std::vector<Document>& documents) override;

  void cancel_later(const std::string& lease, milliseconds at_most) override;
  void forbid_to_wait() const override;

 private:
  client::Value ask(std::vector<std::string> argv) const;
  [[noreturn]] void refuse(const client::Value& value) const;

  const std::shared_ptr<ClientCore> client_;
};

}  // namespace holdfast
