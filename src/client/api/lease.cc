// The public classes Lease and Leases, over LeaseCore.
#include "holdfast/lease.h"

#include <set>
#include <utility>

#include "client/algorithm/lease_core.h"
#include "client/api/client_core.h"
#include "client/api/lease_server.h"
#include "client/transport/transport.h"

namespace holdfast {

namespace {

std::string text_of(const std::vector<std::string>& keys) {
  return keys.size() == 1 ? "a key is not free: " + keys.front()
                          : std::to_string(keys.size()) + " keys are not free, first " + keys.front();
}

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

LeaseError::LeaseError(const std::string& text, std::exception_ptr cause)
    : std::runtime_error(text), cause_(std::move(cause)) {}

Collision::Collision(std::vector<std::string> keys, std::exception_ptr cause)
    : LeaseError(text_of(keys), std::move(cause)), keys_(std::move(keys)) {}

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
std::vector<uint64_t> Lease::confirm() { return core().confirm(); }
void Lease::cancel() { core().cancel(); }

void Lease::renew(std::optional<milliseconds> ttl) {
  if (ttl) check_lease_ttl(*ttl);
  core().renew(ttl);
}

Leases::Leases(Client& client) : server_(std::make_shared<ServerLeases>(client.core_)) { store_ = server_; }

// The pointer does not own the store.
Leases::Leases(LeaseStore& store) : store_(std::shared_ptr<LeaseStore>(), &store) {}

Lease Leases::lease(std::vector<Document> documents, milliseconds ttl) {
  check(documents);
  check_lease_ttl(ttl);
  return Lease(std::make_unique<LeaseCore>(LeaseBackend{store_, server_, client::Loop::now},
                                           std::move(documents), ttl));
}

}  // namespace holdfast
