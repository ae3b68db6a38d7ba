// libuv needs the memory of a handle until its close callback has run, and the user may drop the stream in
// any callback. So the stream deletes itself in the last close callback, and user_ is null after the drop.
#include "client/transport/stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "client/transport/connection.h"
#include "client/transport/loop.h"

namespace holdfast::client {
namespace {

// The most memory that an idle stream keeps.
constexpr size_t kKeptBytes = size_t{16} << 10;

constexpr const char* kClosed = "server closed the connection";

Stream* self(void* data) { return static_cast<Stream*>(data); }

// Makes a uv_buf_t without uv_buf_init(), which truncates the length to 32 bits.
uv_buf_t as_buf(const Buffer& buffer) {
  uv_buf_t buf;
  buf.base = const_cast<char*>(buffer.data());
  buf.len = buffer.size();
  return buf;
}

void set_option(int fd, int level, int option, int value) {
  setsockopt(fd, level, option, &value, sizeof value);
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// Returns the text of a TLS failure, with advice.
std::string tls_failure(const std::string& why, const std::string& name) {
  std::string text = "TLS: " + why;
  if (has(why, "self-signed") || has(why, "issuer certificate"))
    return text + "; name the authority of the server's certificate by cacert=FILE";
  if (has(why, "mismatch"))
    return text + "; the server's certificate is not for " + name +
           "; connect to a name in the certificate, or give one by sni=NAME";
  if (has(why, "certificate required") || has(why, "handshake failure"))
    return text + "; the server may require a certificate: give cert=FILE and key=FILE";
  return text;
}

}  // namespace

Stream::Ptr Stream::connect(Loop& loop, const sockaddr& address, const StreamTls& tls, StreamUser& user,
                            std::string& why) {
  Ptr stream(new Stream(loop, tls, user));
  const int error = stream->begin(address);
  if (error == 0) return stream;
  why = uv_strerror(error);
  return nullptr;
}

Stream::Stream(Loop& loop, const StreamTls& tls, StreamUser& user)
    : loop_(loop), user_(&user), name_(tls.name) {
  if (tls.context) tls_ = std::make_unique<TlsSession>(tls.context, tls.name);
  uv_tcp_init(&loop.core().uv, &tcp_);
  uv_prepare_init(&loop.core().uv, &iteration_end_);
  tcp_.data = iteration_end_.data = connect_.data = write_.data = this;
}

int Stream::begin(const sockaddr& address) {
  const int error = uv_tcp_connect(&connect_, &tcp_, &address, on_connect);
  if (error == 0) set_options();
  return error;
}

// Sets the options with which the client detects a vanished machine within 30 s, with or without
// unacknowledged bytes.
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

// Closes the stream, over TLS with a close message. Without it the server would assume a truncation attack.
void Stream::close() {
  user_ = nullptr;
  if (tls_ && tls_->is_open() && !writing_) {
    tls_->close(queued_);
    const uv_buf_t buf = as_buf(queued_);
    if (!queued_.empty()) uv_try_write(handle(), &buf, 1);
  }
  uv_close(reinterpret_cast<uv_handle_t*>(&tcp_), on_close);
  uv_close(reinterpret_cast<uv_handle_t*>(&iteration_end_), on_close);
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
  accepted_ = true;
  if (!tls_) return user_->stream_open();
  if (!tls_->start(queued_)) return end(tls_failure(tls_->error(), name_));
  flush_later();
}

// --- input ---

void Stream::on_alloc(uv_handle_t* handle, size_t, uv_buf_t* buf) noexcept {
  auto& buffer = self(handle->data)->loop_.core().read_buffer;
  *buf = uv_buf_init(buffer.data(), static_cast<unsigned>(buffer.size()));
}

void Stream::on_read(uv_stream_t* handle, ssize_t n, const uv_buf_t* buf) noexcept {
  Stream* stream = self(handle->data);
  if (n > 0) return stream->take({buf->base, static_cast<size_t>(n)});
  if (n < 0) stream->end_of_input(n == UV_EOF ? kClosed : uv_strerror(static_cast<int>(n)));
}

void Stream::take(std::string_view bytes) {
  if (tls_) return take_encrypted(bytes);
  user_->stream_read(bytes);
}

void Stream::take_encrypted(std::string_view bytes) {
  const bool was_open = tls_->is_open();
  const bool good = tls_->feed(bytes, plain_in_, queued_);
  if (!queued_.empty()) flush_later();
  if (!was_open && tls_->is_open()) user_->stream_open();
  if (user_ != nullptr && !plain_in_.empty()) user_->stream_read(plain_in_.view());
  plain_in_.reset(kKeptBytes);
  if (user_ == nullptr) return;
  if (!good) {
    plain_out_.clear();
    flush();  // sends the TLS alert with the reason to the server
    end(tls_failure(tls_->error(), name_));
  } else if (tls_->state() == TlsSession::State::kEnded) {
    end(kClosed);
  }
}

void Stream::end_of_input(const std::string& why) {
  if (!why_.empty()) return end(why_);
  const bool early = tls_ && !tls_->is_open();
  end(early ? "TLS: " + why + " during the handshake; does this port speak TLS?" : why);
}

void Stream::end(const std::string& why) {
  if (ended_ || user_ == nullptr) return;
  ended_ = true;
  uv_read_stop(handle());
  user_->stream_end(why);
}

// Ends the stream later: the user gets stream_end() when the loop sees the end of the socket. stream_end()
// must not run within a call of the user. It must not run at the end of a loop iteration either, where it
// would delay the writes of other streams.
void Stream::end_soon(std::string why) {
  if (!why_.empty()) return;
  why_ = std::move(why);
  uv_os_fd_t fd = -1;
  if (uv_fileno(reinterpret_cast<uv_handle_t*>(&tcp_), &fd) == 0) ::shutdown(fd, SHUT_RDWR);
}

// --- output ---

void Stream::write(std::string_view bytes) {
  if (ended_ || !why_.empty()) return;
  Buffer& queue = tls_ ? plain_out_ : queued_;
  const size_t waiting = std::min(queue.size() + sending_.size(), kMaxUnsentBytes);
  if (bytes.size() > kMaxUnsentBytes - waiting) return give_up();
  queue.append(bytes);
  flush_later();
}

void Stream::flush_later() {
  if (!writing_ && uv_is_active(reinterpret_cast<uv_handle_t*>(&iteration_end_)) == 0)
    uv_prepare_start(&iteration_end_, on_iteration_end);
}

void Stream::on_iteration_end(uv_prepare_t* handle) noexcept {
  uv_prepare_stop(handle);
  self(handle->data)->flush();
}

// Encrypts all bytes of a loop iteration together, because each TLS record has a cost.
void Stream::encrypt() {
  if (plain_out_.empty()) return;
  if (!tls_->write(plain_out_.view(), queued_)) end_soon(tls_failure(tls_->error(), name_));
  plain_out_.reset(kKeptBytes);
}

// Writes the queued bytes. libuv sends later the bytes that the kernel does not take at once. It also gets
// the bytes after an error, because it reports the error in a callback.
void Stream::flush() {
  if (writing_) return;
  if (tls_) encrypt();
  if (queued_.empty()) return;
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
