// Helper for all libuv handles.
#pragma once

#include <uv.h>

namespace holdfast {

// Closes the handle, unless it is already closing. The handle must live until the loop has run once more.
template <typename Handle>
void close_handle(Handle& handle) {
  auto* h = reinterpret_cast<uv_handle_t*>(&handle);
  if (uv_is_closing(h) == 0) uv_close(h, nullptr);
}

// The object that a handle or a request of libuv has as its data.
template <typename Object>
Object* owner_of(const void* data) {
  return static_cast<Object*>(const_cast<void*>(data));
}

}  // namespace holdfast
