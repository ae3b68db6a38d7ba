// libuv's streams: listeners and connections without a system behind them.
#include <uv.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <memory>
#include <utility>

#include "loop.h"

namespace holdfast::simulation {

Loop::Stream& Loop::stream(const void* handle) {
  for (const auto& stream : streams) {
    if (static_cast<const void*>(stream->handle) == handle && !stream->closed) return *stream;
  }
  assert(false && "a stream that is not open is used");
  std::abort();
}

// As uv__read(): until the socket is empty, the buffer was not filled, or the server stops to read.
void Loop::read(Stream& stream) {
  constexpr int kMostReads = 32;
  const std::shared_ptr<Socket> socket = stream.socket;
  for (int reads = 0; reads < kMostReads && !stream.closed && stream.read != nullptr; ++reads) {
    const bool at_end = socket->client_ended || socket->reset;
    if (socket->to_server.empty() && !at_end) return;
    uv_buf_t buf = uv_buf_init(nullptr, 0);
    constexpr size_t kSuggested = size_t{64} << 10U;
    stream.alloc(reinterpret_cast<uv_handle_t*>(stream.handle), kSuggested, &buf);
    if (buf.base == nullptr || buf.len == 0) return stream.read(stream.handle, UV_ENOBUFS, &buf);
    if (socket->reset) return stream.read(stream.handle, UV_ECONNRESET, &buf);
    if (socket->to_server.empty()) return stream.read(stream.handle, UV_EOF, &buf);
    const size_t n = std::min<size_t>(buf.len, socket->to_server.size());
    std::memcpy(buf.base, socket->to_server.data(), n);
    socket->to_server.erase(0, n);
    stream.read(stream.handle, static_cast<ssize_t>(n), &buf);
    if (n < buf.len) return;
  }
}

size_t Loop::write(Stream& stream, const uv_buf_t& buf) {
  Socket& socket = *stream.socket;
  const size_t n = std::min<size_t>(buf.len, socket.room);
  if (dead_ || n == 0) return dead_ ? buf.len : 0;
  socket.to_client.append(buf.base, n);
  socket.sent_bytes += n;
  if (socket.room != SIZE_MAX) socket.room -= n;
  return n;
}

void Loop::finish_write(Stream& stream) {
  Socket& socket = *stream.socket;
  const uv_buf_t buf = {stream.unsent.data(), stream.unsent.size()};
  const size_t n = write(stream, buf);
  stream.unsent.erase(0, n);
  if (n > 0 && !dead_) events_.sent(socket);
  if (!stream.unsent.empty() && !socket.reset) return;
  uv_write_t* request = std::exchange(stream.write, nullptr);
  stream.written(request, socket.reset ? UV_EPIPE : 0);
}

}  // namespace holdfast::simulation

using holdfast::simulation::Loop;
using holdfast::simulation::Socket;

namespace {

Loop::Stream& make_stream(uv_loop_t* loop, uv_stream_t* handle, uv_handle_type type) {
  handle->loop = loop;
  handle->type = type;
  handle->flags = 0;
  auto& streams = Loop::get().streams;
  streams.push_back(std::make_unique<Loop::Stream>());
  streams.back()->handle = handle;
  return *streams.back();
}

}  // namespace

extern "C" {

int uv_tcp_init(uv_loop_t* loop, uv_tcp_t* tcp) {
  make_stream(loop, reinterpret_cast<uv_stream_t*>(tcp), UV_TCP);
  return 0;
}

int uv_pipe_init(uv_loop_t* loop, uv_pipe_t* pipe, int) {
  make_stream(loop, reinterpret_cast<uv_stream_t*>(pipe), UV_NAMED_PIPE);
  return 0;
}

int uv_tcp_open(uv_tcp_t*, uv_os_sock_t) { return 0; }
int uv_pipe_open(uv_pipe_t*, uv_file) { return 0; }

int uv_listen(uv_stream_t* stream, int, uv_connection_cb callback) {
  Loop::get().stream(stream).on_connection = callback;
  return 0;
}

int uv_accept(uv_stream_t* listener, uv_stream_t* stream) {
  Loop::Stream& from = Loop::get().stream(listener);
  if (from.accepted == nullptr) return UV_EAGAIN;
  Loop::get().stream(stream).socket = std::move(from.accepted);
  from.accepted = nullptr;
  return 0;
}

int uv_read_start(uv_stream_t* handle, uv_alloc_cb alloc, uv_read_cb read) {
  Loop::Stream& stream = Loop::get().stream(handle);
  stream.alloc = alloc;
  stream.read = read;
  if (stream.socket->serial == 0) stream.socket->serial = ++Loop::get().last_serial;
  return 0;
}

int uv_read_stop(uv_stream_t* handle) {
  if (uv_is_closing(reinterpret_cast<uv_handle_t*>(handle)) == 0) Loop::get().stream(handle).read = nullptr;
  return 0;
}

int uv_try_write(uv_stream_t* handle, const uv_buf_t bufs[], unsigned) {
  Loop& loop = Loop::get();
  Loop::Stream& stream = loop.stream(handle);
  if (stream.socket->reset) return UV_EPIPE;
  if (stream.socket->room == 0 || stream.write != nullptr) return UV_EAGAIN;
  loop.note_send();
  const size_t n = loop.write(stream, bufs[0]);
  stream.socket->taken_bytes += n;
  loop.note_sent(*stream.socket);
  return static_cast<int>(n);
}

int uv_write(uv_write_t* request, uv_stream_t* handle, const uv_buf_t bufs[], unsigned,
             uv_write_cb written) {
  Loop& loop = Loop::get();
  Loop::Stream& stream = loop.stream(handle);
  assert(stream.write == nullptr);
  loop.note_send();
  stream.write = request;
  stream.written = written;
  stream.unsent.assign(bufs[0].base, bufs[0].len);
  stream.socket->taken_bytes += bufs[0].len;
  loop.wake();
  return 0;
}

size_t uv_stream_get_write_queue_size(const uv_stream_t* handle) {
  return Loop::get().stream(handle).unsent.size();
}

// There is no descriptor: the server's system calls on sockets fail, which it ignores.
int uv_fileno(const uv_handle_t*, uv_os_fd_t* fd) {
  *fd = -1;
  return UV_EBADF;
}
}
