// Writes the RDB file.
#include "core/codec/rdb_writer.h"

#include <bit>

#include "core/codec/hold_codec.h"
#include "core/codec/rdb.h"

namespace holdfast {

namespace {

void put_low_first(std::string& out, uint64_t n, size_t bytes) {
  char text[8];
  for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>((n >> (8 * i)) & 0xFFU);
  out.append(text, bytes);
}

void put_high_first(std::string& out, uint64_t n, size_t bytes) {
  char text[8];
  for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>((n >> (8 * (bytes - 1 - i))) & 0xFFU);
  out.append(text, bytes);
}

}  // namespace

void RdbWriter::header() { out_.append(rdb::kMagic).append("0010"); }

// A length takes 6 bits in the first byte, 14 bits in the first two, or 32 or 64 bits behind the first
// byte.
void RdbWriter::length(uint64_t n) {
  constexpr uint8_t k32Bits = 0x80;
  constexpr uint8_t k64Bits = 0x81;
  if (n < (1U << 6U)) {
    out_.push_back(static_cast<char>(n));
  } else if (n < (1U << 14U)) {
    put_high_first(out_, n | (1U << 14U), 2);
  } else if (n <= UINT32_MAX) {
    out_.push_back(static_cast<char>(k32Bits));
    put_high_first(out_, n, 4);
  } else {
    out_.push_back(static_cast<char>(k64Bits));
    put_high_first(out_, n, 8);
  }
}

void RdbWriter::text(std::string_view bytes) {
  length(bytes.size());
  out_.append(bytes);
}

void RdbWriter::aux(std::string_view name, std::string_view value) {
  out_.push_back(static_cast<char>(rdb::kOpAux));
  text(name);
  text(value);
}

void RdbWriter::library(std::string_view code) {
  out_.push_back(static_cast<char>(rdb::kOpFunction2));
  text(code);
}

void RdbWriter::select_db(uint64_t number) {
  out_.push_back(static_cast<char>(rdb::kOpSelectDb));
  length(number);
}

void RdbWriter::expire_ms(int64_t wall_ms) {
  out_.push_back(static_cast<char>(rdb::kOpExpireMs));
  put_low_first(out_, static_cast<uint64_t>(wall_ms), 8);
}

void RdbWriter::string(std::string_view key, std::string_view value) {
  out_.push_back(static_cast<char>(rdb::kTypeString));
  text(key);
  text(value);
}

void RdbWriter::begin(uint8_t type, std::string_view key, uint64_t elements) {
  out_.push_back(static_cast<char>(type));
  text(key);
  length(elements);
}

void RdbWriter::begin_hash(std::string_view key, uint64_t fields) { begin(rdb::kTypeHash, key, fields); }

void RdbWriter::field(std::string_view name, std::string_view value) {
  text(name);
  text(value);
}

// A deadline is stored as its distance to the first one, plus 1; 0 is none.
void RdbWriter::begin_timed_hash(std::string_view key, uint64_t fields, int64_t first_ms) {
  out_.push_back(static_cast<char>(rdb::kTypeHashDeadlines));
  text(key);
  put_low_first(out_, static_cast<uint64_t>(first_ms), 8);
  length(fields);
}

void RdbWriter::timed_field(std::string_view name, std::string_view value, int64_t deadline_ms,
                            int64_t first_ms) {
  length(deadline_ms == kNoDeadline ? 0 : static_cast<uint64_t>(deadline_ms - first_ms + 1));
  field(name, value);
}

void RdbWriter::begin_list(std::string_view key, uint64_t elements) {
  begin(rdb::kTypeList, key, elements);
}

void RdbWriter::begin_set(std::string_view key, uint64_t elements) { begin(rdb::kTypeSet, key, elements); }

void RdbWriter::begin_zset(std::string_view key, uint64_t members) { begin(rdb::kTypeZset2, key, members); }

void RdbWriter::scored_member(std::string_view member, double score) {
  text(member);
  put_low_first(out_, std::bit_cast<uint64_t>(score), sizeof score);
}

void RdbWriter::end() { out_.push_back(static_cast<char>(rdb::kOpEnd)); }

void append_crc(std::string& out, uint64_t crc) { put_low_first(out, crc, rdb::kChecksumBytes); }

}  // namespace holdfast
