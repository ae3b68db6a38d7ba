// Writes an RDB file piece by piece to the end of a string. The caller keeps the running checksum.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast {

class RdbWriter {
 public:
  // `out` must outlive it.
  explicit RdbWriter(std::string& out) : out_(out) {}

  void header();
  void aux(std::string_view name, std::string_view value);
  // The code of a library of functions.
  void library(std::string_view code);
  void select_db(uint64_t number);
  // Sets the deadline of the next key, in wall-clock milliseconds.
  void expire_ms(int64_t wall_ms);
  void string(std::string_view key, std::string_view value);
  // The caller must then write exactly `fields` fields.
  void begin_hash(std::string_view key, uint64_t fields);
  // A hash of which fields have deadlines, the earliest at `first_ms` (wall clock). timed_field() follows,
  // `fields` times; without a deadline kNoDeadline (hold_codec.h). Redis 7.4 and later can read it.
  void begin_timed_hash(std::string_view key, uint64_t fields, int64_t first_ms);
  void timed_field(std::string_view name, std::string_view value, int64_t deadline_ms, int64_t first_ms);
  void field(std::string_view name, std::string_view value);
  // The caller must then write exactly `elements` elements.
  void begin_list(std::string_view key, uint64_t elements);
  void begin_set(std::string_view key, uint64_t elements);
  void element(std::string_view text) { this->text(text); }
  // The caller must then write exactly `members` scored members.
  void begin_zset(std::string_view key, uint64_t members);
  void scored_member(std::string_view member, double score);
  void end();

 private:
  void begin(uint8_t type, std::string_view key, uint64_t elements);
  void length(uint64_t n);
  void text(std::string_view bytes);

  std::string& out_;
};

// Appends the checksum of all bytes before it, behind end().
void append_crc(std::string& out, uint64_t crc);

}  // namespace holdfast
