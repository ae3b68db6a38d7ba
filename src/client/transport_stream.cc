// libuv wants a handle's memory until its close callback has run, and the user may drop the stream from
// within any callback: so it belongs to libuv, and points to its user while that cares.
#include "client/transport_stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cassert>
#include <utility>

#include "client/transport_connection.h"
#include "client/transport_loop.h"

namespace holdfast::client {
namespace {

// Memory that an idle stream may keep.
constexpr size_t kKeptBytes = size_t{16} << 10;

Stream* self(const void* data) { return static_cast<Stream*>(const_cast<void*>(data)); }

// Not by uv_buf_init(), which cuts the length to 32 bits.
uv_buf_t as_buf(const Buffer& buffer) {
  uv_buf_t buf;
  buf.base = const_cast<char*>(buffer.data());
  buf.len = buffer.size();
  return buf;
}

void set_option(int fd, int level, int option, int value) {
  setsockopt(fd, level, option, &value, sizeof value);
}

}  // namespace

Stream::Ptr Stream::connect(Loop& loop, const sockaddr& address, StreamUser& user, std::string& why) {
  Ptr stream(new Stream(loop, user));
  const int error = stream->begin(address);
  if (error == 0) return stream;
  why = uv_strerror(error);
  return nullptr;
}

Stream::Stream(Loop& loop, StreamUser& user) : loop_(loop), user_(&user) {
  uv_tcp_init(&loop.core().uv, &tcp_);
  uv_prepare_init(&loop.core().uv, &turn_end_);
  tcp_.data = turn_end_.data = connect_.data = write_.data = this;
}

int Stream::begin(const sockaddr& address) {
  const int error = uv_tcp_connect(&connect_, &tcp_, &address, on_connect);
  if (error == 0) set_options();
  return error;
}

// A machine that has vanished is noticed within half a minute, whether it owes an acknowledgement or not.
void Stream::set_options() {
  uv_os_fd_t fd = -1;
  uv_fileno(reinterpret_cast<uv_handle_t*>(&tcp_), &fd);
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 15);  // seconds
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 30000);  // ms
}

void Stream::close() {
  user_ = nullptr;
  uv_close(reinterpret_cast<uv_handle_t*>(&tcp_), on_close);
  uv_close(reinterpret_cast<uv_handle_t*>(&turn_end_), on_close);
}

void Stream::on_close(uv_handle_t* handle) noexcept {
  Stream* stream = self(handle->data);
  if (--stream->handles_ == 0) delete stream;
}

void Stream::on_connect(uv_connect_t* request, int status) noexcept { self(request->data)->opened(status); }

void Stream::opened(int status) {
  if (user_ == nullptr) return;
  if (status == 0) status = uv_read_start(handle(), on_alloc, on_read);
  if (status != 0) return end(uv_strerror(status));
  user_->stream_open();
}

// --- in ---

void Stream::on_alloc(uv_handle_t* handle, size_t, uv_buf_t* buf) noexcept {
  auto& buffer = self(handle->data)->loop_.core().read_buffer;
  *buf = uv_buf_init(buffer.data(), static_cast<unsigned>(buffer.size()));
}

void Stream::on_read(uv_stream_t* handle, ssize_t n, const uv_buf_t* buf) noexcept {
  Stream* stream = self(handle->data);
  if (n == 0) return;
  if (n > 0) return stream->user_->stream_read({buf->base, static_cast<size_t>(n)});
  if (!stream->why_.empty()) return stream->end(stream->why_);
  stream->end(n == UV_EOF ? "server closed the connection" : uv_strerror(static_cast<int>(n)));
}

void Stream::end(const std::string& why) {
  if (ended_ || user_ == nullptr) return;
  ended_ = true;
  uv_read_stop(handle());
  user_->stream_end(why);
}

// Not from within the user's call, nor at the end of a turn, when what others write behind it would have to
// wait: it is told when the loop sees the socket's end.
void Stream::end_soon(std::string why) {
  if (!why_.empty()) return;
  why_ = std::move(why);
  uv_os_fd_t fd = -1;
  if (uv_fileno(reinterpret_cast<uv_handle_t*>(&tcp_), &fd) == 0) ::shutdown(fd, SHUT_RDWR);
}

// --- out ---

void Stream::write(std::string_view bytes) {
  if (ended_ || !why_.empty()) return;
  if (bytes.size() > kMaxUnsentBytes - queued_.size() - sending_.size()) return give_up();
  queued_.append(bytes);
  if (!writing_ && uv_is_active(reinterpret_cast<uv_handle_t*>(&turn_end_)) == 0)
    uv_prepare_start(&turn_end_, on_turn_end);
}

void Stream::on_turn_end(uv_prepare_t* handle) noexcept {
  uv_prepare_stop(handle);
  self(handle->data)->flush();
}

// What the system does not take at once, libuv sends later; so it does where that failed, as it tells what
// has happened from a callback.
void Stream::flush() {
  if (writing_ || queued_.empty()) return;
  uv_buf_t buf = as_buf(queued_);
  const int n = uv_try_write(handle(), &buf, 1);
  if (n > 0) queued_.consume(static_cast<size_t>(n));
  if (queued_.empty()) return queued_.reset(kKeptBytes);
  sending_.swap(queued_);
  buf = as_buf(sending_);
  writing_ = uv_write(&write_, handle(), &buf, 1, on_write) == 0;
}

void Stream::on_write(uv_write_t* request, int status) noexcept {
  Stream* stream = self(request->data);
  stream->writing_ = false;
  stream->sending_.reset(0);
  if (status == 0) return stream->flush();
  stream->end(stream->why_.empty() ? uv_strerror(status) : stream->why_);
}

}  // namespace holdfast::client
