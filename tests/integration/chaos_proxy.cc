// Edge-triggered epoll wakes a pair. The pair reads all available bytes, decides what happens to each
// piece, and writes the pieces that are due. A pair with work at a later time has an alarm.
#include "chaos_proxy.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <stdexcept>
#include <string>
#include <utility>

#include "client.h"

namespace holdfast::integration {

namespace {

// The ids of epoll events: 0 is the order to stop, then the doors, and from this value on the pairs.
constexpr uint64_t kFirstPair = 1000;

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

Fd new_socket() {
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) throw std::runtime_error("no socket for the proxy");
  return socket;
}

Fd listen_on_free_port(int& port) {
  Fd socket = new_socket();
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  auto* const named = reinterpret_cast<sockaddr*>(&address);
  if (bind(socket.get(), named, size) != 0 || listen(socket.get(), 512) != 0)
    throw std::runtime_error("the proxy cannot listen");
  getsockname(socket.get(), named, &size);
  port = ntohs(address.sin_port);
  return socket;
}

// After this, closing the socket sends RST.
void make_abrupt(int fd) {
  const linger now{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

void send_small_pieces(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void watch(int poll, int fd, uint64_t id, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  if (epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event) != 0) throw std::runtime_error("the proxy cannot wait");
}

uint64_t replies_in(std::string_view bytes) {
  uint64_t n = 0;
  for (size_t size = reply_size(bytes); size != 0; size = reply_size(bytes)) {
    bytes.remove_prefix(size);
    ++n;
  }
  return std::max<uint64_t>(n, 1);
}

}  // namespace

// Both ends of a connection; index 0 is the client's, 1 the server's.
struct ChaosProxy::Pair {
  uint64_t id = 0;
  std::array<Fd, 2> ends;
  std::array<std::deque<Piece>, 2> under_way;  // the bytes in flight to that end
  bool swallows = false;                       // drops the bytes of the server
  bool ended = false;                          // one end has closed: both close after the rest is delivered
  Clock::time_point cut_at = Clock::time_point::max();
  bool over = false;
};

ChaosProxy::ChaosProxy(size_t servers, uint64_t seed, const Intensity& intensity)
    : intensity_(intensity),
      dice_(seed),
      poll_(epoll_create1(EPOLL_CLOEXEC)),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      doors_(servers) {
  watch(poll_.get(), stop_.get(), 0, EPOLLIN);
  for (size_t i = 0; i < servers; ++i) {
    doors_[i].listener = listen_on_free_port(doors_[i].port);
    watch(poll_.get(), doors_[i].listener.get(), i + 1, EPOLLIN);
  }
  thread_ = std::thread([this] { run(); });
}

ChaosProxy::~ChaosProxy() {
  const uint64_t one = 1;
  while (::write(stop_.get(), &one, sizeof one) != sizeof one) {
  }
  thread_.join();
}

void ChaosProxy::lead_to(size_t server, int port) {
  const std::lock_guard guard(mutex_);
  doors_.at(server).leads_to = port;
}

ProxyCounts ChaosProxy::counts() const {
  const std::lock_guard guard(mutex_);
  return counts_;
}

void ChaosProxy::run() {
  std::array<epoll_event, 256> events{};
  for (;;) {
    const int wait_ms = alarms_.empty() ? -1 : left_ms(alarms_.begin()->first);
    const int n = epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), wait_ms);
    for (int i = 0; i < n; ++i) {
      const uint64_t id = events.at(static_cast<size_t>(i)).data.u64;
      if (id == 0) return;
      if (id < kFirstPair) {
        accept_at(doors_[id - 1]);
      } else if (const auto pair = pairs_.find(id); pair != pairs_.end()) {
        serve(*pair->second);
      }
    }
    while (!alarms_.empty() && alarms_.begin()->first <= Clock::now()) {
      const uint64_t id = alarms_.begin()->second;
      alarms_.erase(alarms_.begin());
      if (const auto pair = pairs_.find(id); pair != pairs_.end()) serve(*pair->second);
    }
    for (const uint64_t id : std::exchange(over_, {})) pairs_.erase(id);
  }
}

bool ChaosProxy::is_shut(Door& door) {
  const Clock::time_point now = Clock::now();
  if (now < door.shut_until) return true;
  if (!chance(intensity_.shut_one_in)) return false;
  door.shut_until = now + std::chrono::milliseconds(dice_.between(50, 500));
  return true;
}

void ChaosProxy::accept_at(Door& door) {
  for (;;) {
    Fd client(accept4(door.listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (client.get() < 0) return;
    const bool shut = is_shut(door);
    int port = 0;
    {
      const std::lock_guard guard(mutex_);
      port = door.leads_to;
      counts_.turned_away += shut ? 1 : 0;
    }
    Fd server = new_socket();
    const sockaddr_in address = loopback(port);
    const bool gone =
        !shut && connect(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
        errno != EINPROGRESS;
    if (shut || gone) {
      make_abrupt(client.get());
      continue;
    }
    send_small_pieces(client.get());
    send_small_pieces(server.get());
    auto pair = std::make_unique<Pair>();
    pair->id = kFirstPair + ++last_pair_;
    pair->ends = {std::move(client), std::move(server)};
    for (const Fd& end : pair->ends)
      watch(poll_.get(), end.get(), pair->id, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
    pairs_.emplace(pair->id, std::move(pair));
  }
}

void ChaosProxy::serve(Pair& pair) {
  if (pair.over) return;
  if (pair.cut_at <= Clock::now()) return close(pair, true);
  for (const bool from_server : {false, true}) {
    read(pair, from_server);
    if (pair.over) return;
  }
  const bool client_idle = write(pair, false);
  const bool server_idle = write(pair, true);
  if (!pair.over && pair.ended && client_idle && server_idle) close(pair, false);
}

void ChaosProxy::read(Pair& pair, bool from_server) {
  std::array<char, 16384> block{};
  while (!pair.over) {
    const ssize_t n = recv(pair.ends.at(from_server ? 1 : 0).get(), block.data(), block.size(), 0);
    if (n > 0) {
      take(pair, from_server, {block.data(), static_cast<size_t>(n)});
    } else if (n < 0 && (errno == EAGAIN || errno == ENOTCONN)) {
      return;
    } else {
      // The client cannot receive the rest, but a slow server must still get its requests.
      if (from_server) return close(pair, n < 0);
      pair.ended = true;
      return;
    }
  }
}

// Decides what happens to a piece: it is swallowed, cut, delayed or passed on.
void ChaosProxy::take(Pair& pair, bool from_server, std::string_view bytes) {
  const Clock::time_point now = Clock::now();
  auto& under_way = pair.under_way.at(from_server ? 0 : 1);
  if (from_server && (pair.swallows || chance(intensity_.swallow_one_in))) {
    if (!std::exchange(pair.swallows, true)) {
      pair.cut_at = now + std::chrono::milliseconds(dice_.between(20, 3000));
      alarms_.emplace(pair.cut_at, pair.id);
    }
    const std::lock_guard guard(mutex_);
    counts_.swallowed += replies_in(bytes);
    return;
  }
  Piece piece{now, std::string(bytes), false};
  if (chance(intensity_.cut_one_in)) {
    piece.bytes.resize(dice_.below(bytes.size()));
    piece.last = true;
    const std::lock_guard guard(mutex_);
    ++(from_server ? counts_.cut_replies : counts_.cut_requests);
  }
  if (chance(intensity_.delay_one_in)) {
    piece.due += std::chrono::milliseconds(dice_.between(1, intensity_.longest_delay_ms));
    const std::lock_guard guard(mutex_);
    ++counts_.delayed;
  }
  if (!under_way.empty()) piece.due = std::max(piece.due, under_way.back().due);
  if (piece.due > now) alarms_.emplace(piece.due, pair.id);
  under_way.push_back(std::move(piece));
}

// Whether all bytes to that end are written.
bool ChaosProxy::write(Pair& pair, bool to_server) {
  auto& under_way = pair.under_way.at(to_server ? 1 : 0);
  const int fd = pair.ends.at(to_server ? 1 : 0).get();
  while (!pair.over && !under_way.empty() && under_way.front().due <= Clock::now()) {
    Piece& piece = under_way.front();
    while (!piece.bytes.empty()) {
      const ssize_t n = ::send(fd, piece.bytes.data(), piece.bytes.size(), MSG_NOSIGNAL);
      if (n < 0 && (errno == EAGAIN || errno == ENOTCONN)) return false;
      if (n < 0) {
        close(pair, true);
        return true;
      }
      piece.bytes.erase(0, static_cast<size_t>(n));
    }
    if (piece.last) {
      close(pair, dice_.one_in(2));
      return true;
    }
    under_way.pop_front();
  }
  return under_way.empty();
}

void ChaosProxy::close(Pair& pair, bool abruptly) {
  for (Fd& end : pair.ends) {
    if (abruptly) make_abrupt(end.get());
    end.close();
  }
  pair.over = true;
  over_.push_back(pair.id);
}

}  // namespace holdfast::integration
