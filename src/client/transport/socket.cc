#include "client/transport/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <uv.h>

#include <cassert>
#include <cstring>
#include <optional>
#include <utility>

#include "client/transport/loop.h"
#include "core/base/buffer.h"
#include "core/codec/reply.h"

namespace holdfast::client {

struct SocketConnection::Lookup {
  uv_getaddrinfo_t uv{};
  SocketConnection* connection = nullptr;
};

namespace {

void on_lookup(uv_getaddrinfo_t* request, int error, addrinfo* found) noexcept {
  auto* lookup = static_cast<SocketConnection::Lookup*>(request->data);
  if (lookup->connection != nullptr) lookup->connection->record_lookup(error, found);
  uv_freeaddrinfo(found);
  delete lookup;
}

// Parses a numeric address, also with the zone of a link-local address, as in fe80::1%eth0. Returns nullopt
// for a name.
std::optional<sockaddr_storage> numeric(const std::string& host, int port) {
  sockaddr_storage address{};
  if (uv_ip4_addr(host.c_str(), port, reinterpret_cast<sockaddr_in*>(&address)) == 0) return address;
  if (uv_ip6_addr(host.c_str(), port, reinterpret_cast<sockaddr_in6*>(&address)) == 0) return address;
  return std::nullopt;
}

// Returns the address with this port, which has the same offset in IPv4 and IPv6 addresses.
sockaddr_storage with_port(const addrinfo& found, int port) {
  sockaddr_storage address{};
  std::memcpy(&address, found.ai_addr, found.ai_addrlen);
  reinterpret_cast<sockaddr_in*>(&address)->sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

}  // namespace

SocketConnection::SocketConnection(Loop& loop, const Address& address, ConnectionUser& user)
    : loop_(loop),
      user_(user),
      port_(address.port),
      tls_{address.tls_context, address.tls_name.empty() ? address.host : address.tls_name},
      reader_(address.resp3 ? Protocol::kResp3 : Protocol::kResp2),
      timer_(loop, [this] { on_time(); }) {
  assert(address.tls == (address.tls_context != nullptr) && "client_config_of() has made the address");
  if (const auto known = numeric(address.host, port_)) {
    addresses_ = {*known};
    timer_.set(Loop::now());
  } else {
    look_up(address.host);
  }
}

SocketConnection::~SocketConnection() {
  if (lookup_ == nullptr) return;
  lookup_->connection = nullptr;
  uv_cancel(reinterpret_cast<uv_req_t*>(&lookup_->uv));
}

void SocketConnection::look_up(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  auto lookup = std::make_unique<Lookup>();
  lookup->connection = this;
  lookup->uv.data = lookup.get();
  const int error = uv_getaddrinfo(&loop_.core().uv, &lookup->uv, on_lookup, host.c_str(), nullptr, &hints);
  if (error == 0) {
    lookup_ = lookup.release();
  } else {
    why_ = uv_strerror(error);
    timer_.set(Loop::now());
  }
}

void SocketConnection::record_lookup(int error, const addrinfo* found) {
  lookup_ = nullptr;
  if (error != 0) why_ = uv_strerror(error);
  for (; found != nullptr; found = found->ai_next) addresses_.push_back(with_port(*found, port_));
  connect_next();
}

void SocketConnection::on_time() {
  if (stream_ && stream_->is_accepted()) why_ = "TLS: no handshake in time; does this port speak TLS?";
  connect_next();
}

// Tries the next address, until all have failed. "localhost" is often ::1 first, while the server listens
// on 127.0.0.1 only.
void SocketConnection::connect_next() {
  stream_.reset();
  while (next_ < addresses_.size()) {
    const auto& address = reinterpret_cast<const sockaddr&>(addresses_[next_++]);
    stream_ = Stream::connect(loop_, address, tls_, *this, why_);
    if (!stream_) continue;
    why_ = "no connection in time";
    return timer_.set(Loop::now() + DurationMs{kSilence.count / static_cast<int64_t>(addresses_.size())});
  }
  user_.broke(why_);
}

void SocketConnection::stream_open() {
  open_ = true;
  timer_.set(kNever);
  user_.opened();
}

void SocketConnection::stream_end(const std::string& why) {
  why_ = why;
  if (!open_) return connect_next();
  open_ = false;
  user_.broke(why_);
}

void SocketConnection::stream_read(std::string_view bytes) {
  const std::weak_ptr<const bool> life = life_;
  reader_.feed(bytes);
  while (std::optional<Value> value = reader_.next()) {
    user_.answered(std::move(*value));
    if (life.expired()) return;
  }
  if (reader_.error().empty()) return;
  stream_.reset();
  stream_end(reader_.error());
}

// A request has the form of a reply: an array of bulk strings. hiredis formats it with sprintf, which took
// a quarter of the client's instructions of a lock.
void SocketConnection::send(const std::vector<std::string>& argv) {
  assert(open_);
  size_t total = 0;
  for (const std::string& word : argv) total += word.size();
  if (total > kMaxUnsentBytes) return stream_->give_up();
  Buffer bytes;
  holdfast::Reply request(bytes, 2);
  request.array(argv.size());
  for (const std::string& word : argv) request.bulk(word);
  stream_->write(bytes.view());
}

}  // namespace holdfast::client
