// One epoll serves all connections. The bytes of each are split into replies as they come.
#include "crowd.h"

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "transcripts/reply_text.h"

namespace holdfast::integration {

void allow_open_files(rlim_t files) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= files) return;
  limit.rlim_cur = files;
  limit.rlim_max = std::max(limit.rlim_max, files);
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
    throw std::runtime_error("cannot raise the limit of open files; raise its hard limit");
}

Crowd::Crowd(const Server& server, size_t size) : poll_(epoll_create1(EPOLL_CLOEXEC)) {
  allow_open_files(size + 100);
  members_.reserve(size);
  for (size_t who = 0; who < size; ++who) {
    members_.push_back({connect_tcp(server.port()), ""});
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = who;
    epoll_ctl(poll_.get(), EPOLL_CTL_ADD, members_[who].socket.get(), &event);
  }
}

void Crowd::send(size_t who, std::string_view line) {
  const std::string bytes = std::string(line) + "\r\n";
  const int fd = members_[who].socket.get();
  const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n != static_cast<ssize_t>(bytes.size()))
    throw std::runtime_error("a connection of the crowd cannot send");
}

std::optional<Heard> Crowd::hear(Clock::time_point deadline) {
  while (next_ == heard_.size()) {
    heard_.clear();
    next_ = 0;
    std::array<epoll_event, 64> events;
    const int n = epoll_wait(poll_.get(), events.data(), events.size(), left_ms(deadline));
    if (n < 0 && errno != EINTR) throw std::runtime_error(std::string("epoll: ") + std::strerror(errno));
    if (n == 0) return std::nullopt;
    for (int i = 0; i < n; ++i) read(events[static_cast<size_t>(i)].data.u64);
  }
  return std::move(heard_[next_++]);
}

Heard Crowd::hear() {
  std::optional<Heard> heard = hear(Clock::now() + kPatience);
  if (!heard) throw std::runtime_error("no connection of the crowd has received a reply");
  return std::move(*heard);
}

void Crowd::read(size_t who) {
  Member& member = members_[who];
  std::array<char, 4096> block;
  const ssize_t n = recv(member.socket.get(), block.data(), block.size(), MSG_DONTWAIT);
  if (n < 0 && errno == EAGAIN) return;
  if (n <= 0) {
    member.socket.close();
    heard_.push_back({who, "(closed)"});
    return;
  }
  member.inbox.append(block.data(), static_cast<size_t>(n));
  while (const size_t size = reply_size(member.inbox)) {
    const std::string_view reply = std::string_view(member.inbox).substr(0, size);
    heard_.push_back({who, transcript::ReplyText(reply, false).next()});
    member.inbox.erase(0, size);
  }
}

void Crowd::reset(size_t who) {
  const linger hard{1, 0};
  setsockopt(members_[who].socket.get(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  members_[who].socket.close();
}

}  // namespace holdfast::integration
