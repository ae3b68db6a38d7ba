// Helpers for the handles and buffers of libuv.
#pragma once

#include <uv.h>

#include <string_view>

namespace holdfast {

// Closes the handle, unless it is already closing. The handle must live until the loop has run once more.
template <typename Handle>
void close_handle(Handle& handle) {
  auto* h = reinterpret_cast<uv_handle_t*>(&handle);
  if (uv_is_closing(h) == 0) uv_close(h, nullptr);
}

// The object that a handle or a request of libuv has as its data.
template <typename Object>
Object* owner_of(void* data) {
  return static_cast<Object*>(data);
}

// The descriptor of an open socket; -1: it has none.
inline int fd_of(const uv_stream_t* stream) {
  uv_os_fd_t fd = -1;
  uv_fileno(reinterpret_cast<const uv_handle_t*>(stream), &fd);
  return fd;
}

// The bytes for a write, which only reads them. uv_buf_init() would truncate the length to 32 bits.
inline uv_buf_t buf_of(std::string_view bytes) {
  uv_buf_t buf;
  buf.base = const_cast<char*>(bytes.data());
  buf.len = bytes.size();
  return buf;
}

}  // namespace holdfast
