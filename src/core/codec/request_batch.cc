#include "core/codec/request_batch.h"

#include <algorithm>

namespace holdfast {

void RequestBatch::cut(std::string_view bytes, const Limits& limits) {
  clear();
  const uint64_t most_bytes = std::min(limits.bulk_bytes, kMostBytes);
  uint32_t used = 0;
  while (count_ < kRequests) {
    const uint32_t count = plain_count(bytes, limits);
    if (count == 0) return;
    uint32_t missing = count;
    std::string_view* to = &arguments_[used];
    const size_t size = plain_arguments(bytes, kPlainCountBytes, missing, most_bytes,
                                        [&to](std::string_view argument) { *to++ = argument; });
    if (missing > 0) return;
    pieces_[count_++] = {used, count, static_cast<uint32_t>(size)};
    used += count;
    bytes.remove_prefix(size);
  }
}

}  // namespace holdfast
