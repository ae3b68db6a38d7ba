// The bytes that the loop sends when the socket has room again. They must not move until it has.
#pragma once

#include <uv.h>

#include "core/base/buffer.h"
#include "io/os/handles.h"

namespace holdfast {

class PendingWrite {
 public:
  // `owner` is the data of the request that the callback gets.
  explicit PendingWrite(void* owner) { request_.data = owner; }
  PendingWrite(const PendingWrite&) = delete;
  PendingWrite& operator=(const PendingWrite&) = delete;

  bool under_way() const { return under_way_; }
  // To be filled before begin(), and emptied after end().
  Buffer& bytes() { return bytes_; }

  // Returns false if the peer disconnected.
  bool begin(uv_stream_t* stream, uv_write_cb written) {
    const uv_buf_t buf = buf_of(bytes_.view());
    under_way_ = true;
    return uv_write(&request_, stream, &buf, 1, written) == 0;
  }
  void end() { under_way_ = false; }

 private:
  uv_write_t request_;
  Buffer bytes_;
  bool under_way_ = false;
};

}  // namespace holdfast
