#include "load/connection.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace holdfast::bench {

namespace {

constexpr size_t kReadBytes = size_t{64} << 10U;

// Returns the number in a line such as "$12", and the offset of the next line; 0 if the line is incomplete.
std::pair<long, size_t> read_head(std::string_view bytes) {
  const size_t end = bytes.find("\r\n");
  if (end == std::string_view::npos) return {0, 0};
  long n = 0;
  const bool negative = end > 1 && bytes[1] == '-';
  for (size_t i = negative ? 2 : 1; i < end; ++i) n = n * 10 + (bytes[i] - '0');
  return {negative ? -n : n, end + 2};
}

int connect_to(const Address& address) {
  sockaddr_un unix_path{};
  unix_path.sun_family = AF_UNIX;
  address.socket.copy(unix_path.sun_path, sizeof unix_path.sun_path - 1);
  sockaddr_in port{};
  port.sin_family = AF_INET;
  port.sin_port = htons(static_cast<uint16_t>(address.port));
  port.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool is_unix = !address.socket.empty();
  const auto* to =
      is_unix ? reinterpret_cast<const sockaddr*>(&unix_path) : reinterpret_cast<const sockaddr*>(&port);
  const auto size = static_cast<socklen_t>(is_unix ? sizeof unix_path : sizeof port);
  const int fd = socket(is_unix ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, to, size) != 0) fail(fmt::format("cannot connect: {}", std::strerror(errno)));
  return fd;
}

}  // namespace

void fail(const std::string& why) {
  fmt::print(stderr, "load: {}\n", why);
  std::exit(1);  // NOLINT(concurrency-mt-unsafe): there is one thread
}

size_t reply_size(std::string_view bytes) {
  if (bytes.empty()) return 0;
  if (bytes[0] != '$' && bytes[0] != '*') {
    const size_t end = bytes.find("\r\n");
    return end == std::string_view::npos ? 0 : end + 2;
  }
  const auto [n, head] = read_head(bytes);
  if (head == 0 || n < 0) return head;
  if (bytes[0] == '$') {
    const size_t size = head + static_cast<size_t>(n) + 2;
    return size <= bytes.size() ? size : 0;
  }
  size_t size = head;
  for (long i = 0; i < n; ++i) {
    const size_t item = reply_size(bytes.substr(size));
    if (item == 0) return 0;
    size += item;
  }
  return size;
}

Connection::Connection(uv_loop_t* loop, const Address& address, User& user) : user_(user) {
  write_request_.data = this;
  const int fd = connect_to(address);
  if (address.socket.empty()) {
    uv_tcp_init(loop, &handle_.tcp);
    uv_tcp_open(&handle_.tcp, fd);
    uv_tcp_nodelay(&handle_.tcp, 1);
  } else {
    uv_pipe_init(loop, &handle_.pipe, 0);
    uv_pipe_open(&handle_.pipe, fd);
  }
  handle_.handle.data = this;
  const auto allocate = [](uv_handle_t*, size_t, uv_buf_t* buf) {
    static char bytes[kReadBytes];  // each read is consumed before the next
    *buf = uv_buf_init(bytes, sizeof bytes);
  };
  uv_read_start(stream(), allocate, on_read);
}

void Connection::on_read(uv_stream_t* stream, ssize_t n, const uv_buf_t* buf) {
  auto* self = static_cast<Connection*>(stream->data);
  if (n < 0) fail(fmt::format("the server closed a connection: {}", uv_strerror(static_cast<int>(n))));
  self->input_.append(buf->base, static_cast<size_t>(n));
  self->take_replies();
}

void Connection::take_replies() {
  const std::string_view all = input_;
  while (used_ < all.size()) {
    const std::string_view rest = all.substr(used_);
    const size_t size = reply_size(rest);
    if (size == 0) break;
    used_ += size;
    user_.on_reply(rest.substr(0, size));
  }
  input_.erase(0, std::exchange(used_, 0));
}

void Connection::send(std::string_view bytes) {
  if (!in_flight_.empty()) {
    rest_.append(bytes);
    return;
  }
  uv_buf_t buf = uv_buf_init(const_cast<char*>(bytes.data()), static_cast<unsigned>(bytes.size()));
  const int n = uv_try_write(stream(), &buf, 1);
  if (n < 0 && n != UV_EAGAIN) fail(fmt::format("cannot write: {}", uv_strerror(n)));
  rest_.append(bytes.substr(n < 0 ? 0 : static_cast<size_t>(n)));
  if (!rest_.empty()) write_rest();
}

void Connection::write_rest() {
  in_flight_.swap(rest_);
  const uv_buf_t buf = uv_buf_init(in_flight_.data(), static_cast<unsigned>(in_flight_.size()));
  uv_write(&write_request_, stream(), &buf, 1, on_written);
}

void Connection::on_written(uv_write_t* request, int status) {
  auto* self = static_cast<Connection*>(request->data);
  if (status == UV_ECANCELED) return;
  if (status != 0) fail(fmt::format("cannot write: {}", uv_strerror(status)));
  self->in_flight_.clear();
  if (!self->rest_.empty()) self->write_rest();
}

void Connection::close() { uv_close(&handle_.handle, nullptr); }

}  // namespace holdfast::bench
