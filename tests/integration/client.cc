// Sockets are non-blocking, and every wait is a poll() that ends.
#include "client.h"

#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "transcripts/reply_text.h"

namespace holdfast::integration {
namespace {

Fd connect_to(const void* address, socklen_t size, int family) {
  Fd fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) throw std::runtime_error(std::string("no socket: ") + std::strerror(errno));
  const int error = connect(fd.get(), static_cast<const sockaddr*>(address), size) == 0 ? 0 : errno;
  if (error != 0) throw std::runtime_error(std::string("cannot connect: ") + std::strerror(error));
  return fd;
}

int64_t number(std::string_view text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

using HiredisReply = std::unique_ptr<redisReply, void (*)(void*)>;

std::string text_of(const redisReply& reply) {
  const std::string text = reply.str != nullptr ? std::string(reply.str, reply.len) : "";
  switch (reply.type) {
    case REDIS_REPLY_STRING:
      return transcript::in_quotes(text);
    case REDIS_REPLY_STATUS:
      return "+" + text;
    case REDIS_REPLY_ERROR:
      return "-" + text;
    case REDIS_REPLY_INTEGER:
      return std::to_string(reply.integer);
    case REDIS_REPLY_ARRAY:
      break;
    default:
      return "nil";
  }
  std::string elements;
  for (size_t i = 0; i < reply.elements; ++i) elements += (i == 0 ? "" : ", ") + text_of(*reply.element[i]);
  return "[" + elements + "]";
}

}  // namespace

Fd connect_tcp(int port, const std::string& address) {
  const auto port16 = htons(static_cast<uint16_t>(port));
  const int on = 1;
  Fd fd;
  if (address.find(':') == std::string::npos) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = port16;
    inet_pton(AF_INET, address.c_str(), &in.sin_addr);
    fd = connect_to(&in, sizeof in, AF_INET);
  } else {
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    in.sin6_port = port16;
    inet_pton(AF_INET6, address.c_str(), &in.sin6_addr);
    fd = connect_to(&in, sizeof in, AF_INET6);
  }
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // each send() sends at once
  return fd;
}

Fd connect_unix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return connect_to(&address, sizeof address, AF_UNIX);
}

size_t reply_size(std::string_view bytes) {
  size_t at = 0;
  for (int64_t missing = 1; missing > 0; --missing) {
    const size_t end = bytes.find("\r\n", at);
    if (end == std::string_view::npos) return 0;
    const char type = bytes[at];
    const int64_t n = std::max<int64_t>(0, number(bytes.substr(at + 1, end - at - 1)));
    const bool null = bytes[at + 1] == '-';
    at = end + 2;
    if ((type == '$' || type == '=') && !null) at += static_cast<size_t>(n) + 2;
    if (type == '*' || type == '~' || type == '>') missing += n;
    if (type == '%') missing += 2 * n;
    if (at > bytes.size()) return 0;
  }
  return at;
}

std::string frame(std::initializer_list<std::string_view> words) {
  std::string bytes = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string_view word : words) {
    bytes += "$" + std::to_string(word.size()) + "\r\n";
    bytes.append(word).append("\r\n");
  }
  return bytes;
}

void Client::send(std::string_view bytes) {
  if (!try_send(bytes)) throw std::runtime_error("the server closed the connection");
}

bool Client::try_send(std::string_view bytes) {
  const Clock::time_point deadline = Clock::now() + kPatience;
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      bytes.remove_prefix(static_cast<size_t>(n));
    } else if (errno != EAGAIN) {
      return false;
    } else if (!wait(POLLOUT, deadline)) {
      throw std::runtime_error("the server reads no more bytes");
    }
  }
  return true;
}

bool Client::wait(short events, Clock::time_point deadline) {
  pollfd ready{fd(), events, 0};
  return poll(&ready, 1, left_ms(deadline)) == 1;
}

// Returns false if the connection has ended.
bool Client::read_more(Clock::time_point deadline) {
  if (ended_) return false;
  if (!wait(POLLIN, deadline)) {
    const std::string_view rest = std::string_view(inbox_).substr(at_, 200);
    throw std::runtime_error("no whole reply within kPatience; received so far: " +
                             transcript::in_quotes(rest));
  }
  std::array<char, 65536> block;
  const ssize_t n = recv(fd(), block.data(), block.size(), MSG_DONTWAIT);
  if (n < 0 && errno == EAGAIN) return true;
  if (n > 0) inbox_.append(block.data(), static_cast<size_t>(n));
  ended_ = n <= 0;
  return !ended_;
}

std::string Client::reply() {
  const Clock::time_point deadline = Clock::now() + kPatience;
  for (;;) {
    const std::string_view unread = std::string_view(inbox_).substr(at_);
    if (const size_t size = reply_size(unread); size > 0) {
      std::string text = transcript::ReplyText(unread.substr(0, size), false).next();
      at_ += size;
      if (at_ == inbox_.size()) inbox_.clear(), at_ = 0;
      return text;
    }
    if (!read_more(deadline)) return "(closed)";
  }
}

std::string Client::ask(std::string_view line) {
  if (!try_send(std::string(line) + "\r\n")) return "(closed)";
  return reply();
}

std::string Client::read_to_end() {
  const Clock::time_point deadline = Clock::now() + kPatience;
  while (read_more(deadline)) continue;
  return inbox_.substr(std::exchange(at_, inbox_.size()));
}

bool Client::heard_nothing() { return at_ == inbox_.size() && !ended_ && !wait(POLLIN, Clock::now()); }

std::string Client::exchange(std::string_view input, std::string_view expected) {
  const Clock::time_point deadline = Clock::now() + kPatience;
  size_t come = 0;
  while (come < expected.size() || !input.empty()) {
    if (!wait(static_cast<short>(input.empty() ? POLLIN : POLLIN | POLLOUT), deadline)) {
      return "no more bytes came after " + std::to_string(come) + " bytes";
    }
    if (!input.empty()) {
      const ssize_t n = ::send(fd(), input.data(), input.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n > 0) input.remove_prefix(static_cast<size_t>(n));
    }
    std::array<char, 65536> block;
    const ssize_t n = recv(fd(), block.data(), block.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) continue;
    if (n <= 0) return "the connection ended after " + std::to_string(come) + " bytes";
    const std::string_view got(block.data(), static_cast<size_t>(n));
    const std::string_view wanted = expected.substr(come, got.size());
    come += got.size();
    if (got == wanted) continue;
    const auto at =
        std::mismatch(wanted.begin(), wanted.end(), got.begin(), got.end()).second - got.begin();
    return "the bytes differ from here on: " +
           transcript::in_quotes(got.substr(static_cast<size_t>(at), 200));
  }
  return "";
}

void Client::half_close() { shutdown(fd(), SHUT_WR); }

void Client::reset() {
  const linger hard{1, 0};
  setsockopt(fd(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  socket_.close();
}

int64_t token_of(const std::string& reply, std::string_view owner) {
  const std::string start = "[" + transcript::in_quotes(owner) + ", ";
  return reply.starts_with(start) ? number(std::string_view(reply).substr(start.size())) : 0;
}

int64_t info(Client& client, std::string_view section, std::string_view name) {
  const std::string text = client.ask("INFO " + std::string(section));
  const std::string label = "\\n" + std::string(name) + ":";
  const size_t at = text.find(label);
  if (at == std::string::npos) throw std::runtime_error("not in INFO: " + label + " " + text);
  return number(std::string_view(text).substr(at + label.size()));
}

void until_blocked(Client& client, int64_t connections) {
  until("blocked_clients", [&] { return info(client, "clients", "blocked_clients") == connections; });
}

void until_waiting(Client& client, int64_t waiters) {
  until("lock_waiters", [&] { return info(client, "locks", "lock_waiters") == waiters; });
}

Redis::Redis(const std::string& address, int port)
    : context_(redisConnectWithTimeout(address.c_str(), port, {60, 0}), redisFree) {
  if (context_ == nullptr || context_->err != 0) throw std::runtime_error("hiredis cannot connect");
  redisSetTimeout(context_.get(), {60, 0});
}

Redis::Redis(const std::string& unix_path)
    : context_(redisConnectUnixWithTimeout(unix_path.c_str(), {60, 0}), redisFree) {
  if (context_ == nullptr || context_->err != 0) throw std::runtime_error("hiredis cannot connect");
  redisSetTimeout(context_.get(), {60, 0});
}

std::string Redis::ask(std::initializer_list<std::string_view> words) {
  std::vector<const char*> argv;
  std::vector<size_t> lengths;
  for (const std::string_view word : words) {
    argv.push_back(word.data());
    lengths.push_back(word.size());
  }
  void* raw = redisCommandArgv(context_.get(), static_cast<int>(argv.size()), argv.data(), lengths.data());
  const HiredisReply reply(static_cast<redisReply*>(raw), freeReplyObject);
  return reply == nullptr ? "(closed)" : text_of(*reply);
}

}  // namespace holdfast::integration
