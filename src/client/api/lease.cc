// The public classes Lease and Leases, over LeaseCore.
#include "holdfast/lease.h"

#include <set>
#include <stdexcept>
#include <utility>

#include "client/algorithm/lease_core.h"
#include "client/api/client_core.h"
#include "client/api/lease_server.h"
#include "client/transport/transport.h"

namespace holdfast {

namespace {

void check_lease_ttl(milliseconds ttl) {
  if (ttl < LockOptions::kShortestTtl || ttl.count() > kMaxTtlMs)
    throw std::invalid_argument("a lease's ttl must be 10 to 9007199254740991 ms, not " +
                                std::to_string(ttl.count()));
}

void check(const std::vector<Document>& documents) {
  if (documents.empty()) throw std::invalid_argument("a lease needs at least one document");
  std::set<std::string_view> keys;
  for (const Document& document : documents) {
    if (!keys.insert(document.key).second)
      throw std::invalid_argument("two documents have the same key: " + document.key);
  }
}

}  // namespace

Lease::Lease(std::unique_ptr<LeaseCore> core) : core_(std::move(core)) {}
Lease::Lease(Lease&& other) noexcept = default;
Lease& Lease::operator=(Lease&& other) noexcept = default;
Lease::~Lease() = default;

LeaseCore& Lease::core() const {
  if (core_ == nullptr) throw std::logic_error("this holdfast::Lease was moved from");
  return *core_;
}

Lease::State Lease::state() const { return core().state(); }
milliseconds Lease::validity() const { return core().validity(); }
std::vector<Document> Lease::documents() const { return core().documents(); }
Result<std::vector<uint64_t>> Lease::confirm() { return core().confirm(); }
Status Lease::cancel() { return core().cancel(); }

Status Lease::renew(std::optional<milliseconds> ttl) {
  if (ttl) check_lease_ttl(*ttl);
  return core().renew(ttl);
}

Leases::Leases(Client& client) : server_(std::make_shared<ServerLeases>(client.core_)) { store_ = server_; }

// The pointer does not own the store.
Leases::Leases(LeaseStore& store) : store_(std::shared_ptr<LeaseStore>(), &store) {}

Result<Lease> Leases::lease(std::vector<Document> documents, milliseconds ttl) {
  check(documents);
  check_lease_ttl(ttl);
  auto core = std::make_unique<LeaseCore>(LeaseBackend{store_, server_, client::Loop::now},
                                          std::move(documents), ttl);
  Status status = core->grant();
  if (!status) return status;
  return {std::move(status), Lease(std::move(core))};
}

}  // namespace holdfast
