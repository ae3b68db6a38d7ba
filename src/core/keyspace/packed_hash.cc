// Writes packed hashes; see packed_hash.h.
#include "core/keyspace/packed_hash.h"

#include <cstring>

namespace holdfast {

namespace {

size_t size_bytes(size_t size) {
  size_t bytes = 1;
  for (; size >= 0x80; size >>= 7U) ++bytes;
  return bytes;
}

char* put_sized(char* to, std::string_view text) {
  size_t size = text.size();
  for (; size >= 0x80; size >>= 7U) *to++ = static_cast<char>(size | 0x80U);
  *to++ = static_cast<char>(size);
  if (!text.empty()) std::memcpy(to, text.data(), text.size());
  return to + text.size();
}

}  // namespace

size_t packed_pair_bytes(std::string_view field, std::string_view value) {
  return size_bytes(field.size()) + field.size() + size_bytes(value.size()) + value.size();
}

char* put_packed_pair(char* to, std::string_view field, std::string_view value) {
  return put_sized(put_sized(to, field), value);
}

// Resizes the place of a pair to `size` bytes. The bytes behind it move.
void PackedHashEditor::resize_pair(const PackedPair& pair, size_t size) {
  const size_t begin = offset_of(pair.begin);
  const size_t end = offset_of(pair.end);
  const size_t behind = bytes_.size() - end;
  if (begin + size + behind > bytes_.size()) bytes_.resize(begin + size + behind);
  std::memmove(bytes_.data() + begin + size, bytes_.data() + end, behind);
  bytes_.resize(begin + size + behind);
}

bool PackedHashEditor::set(std::string_view field, std::string_view value) {
  const auto found = PackedHash(bytes()).find_pair(field);
  const size_t begin = found ? offset_of(found->begin) : bytes_.size();
  const size_t size = packed_pair_bytes(field, value);
  if (found) {
    resize_pair(*found, size);
  } else {
    bytes_.resize(begin + size);
  }
  put_packed_pair(bytes_.data() + begin, field, value);
  return !found;
}

bool PackedHashEditor::erase(std::string_view field) {
  const auto found = PackedHash(bytes()).find_pair(field);
  if (!found) return false;
  resize_pair(*found, 0);
  return true;
}

}  // namespace holdfast
