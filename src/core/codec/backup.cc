// Writes and reads the parts of a backup.
#include "core/codec/backup.h"

#include <algorithm>
#include <charconv>

#include "core/base/bytes.h"
#include "core/base/checksum.h"

namespace holdfast {

namespace {

constexpr std::string_view kBackupMagic = "HOLDFAST BACKUP 1\n";
constexpr size_t kPartHeadBytes = 8;
constexpr size_t kSumBytes = 8;

uint32_t crc_of(uint64_t position, uint32_t size, std::string_view bytes) {
  std::string all;
  all.reserve(bytes.size() + 12);
  put_fixed<uint64_t>(all, position);
  put_fixed<uint32_t>(all, size);
  return crc32c(all.append(bytes));
}

// Takes the line "name number" from the front of `text`. Returns false if it is another line.
template <class T>
bool take_number(std::string_view& text, std::string_view name, T& n) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (!line.starts_with(name) || line.substr(name.size(), 1) != " ") return false;
  const std::string_view digits = line.substr(name.size() + 1);
  const auto [last, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
  return fault == std::errc() && last == digits.data() + digits.size();
}

}  // namespace

void BackupWriter::append_part(std::string& out, std::string_view bytes, bool last) {
  const auto size = last ? uint32_t{0} : static_cast<uint32_t>(bytes.size());
  put_fixed<uint32_t>(out, size);
  put_fixed<uint32_t>(out, crc_of(position_, size, bytes));
  out += bytes;
  position_ += kPartHeadBytes + bytes.size();
}

void BackupWriter::begin(std::string& out, const BackupHead& head) {
  out += kBackupMagic;
  position_ = kBackupMagic.size();
  std::string text = "taken-us " + std::to_string(head.taken_us);
  text += "\ntoken-lead-us " + std::to_string(head.token_lead_us);
  text += "\nsnapshot-bytes " + std::to_string(head.snapshot_bytes) + "\n";
  append_part(out, text + format_meta(head.meta), false);
}

void BackupWriter::add(std::string& out, std::string_view bytes) {
  sum_ = crc64(sum_, bytes);
  for (; !bytes.empty(); bytes.remove_prefix(std::min(kBackupPartBytes, bytes.size())))
    append_part(out, bytes.substr(0, kBackupPartBytes), false);
}

void BackupWriter::end(std::string& out) {
  std::string sum;
  put_fixed<uint64_t>(sum, sum_);
  append_part(out, sum, true);
}

bool BackupReader::fail(const std::string& why) {
  error_ = why;
  return false;
}

bool BackupReader::feed(std::string_view bytes, std::string& data) {
  if (!error_.empty()) return false;
  rest_ += bytes;
  while (true) {
    const uint64_t before = position_;
    if (!read_next(data)) return false;
    if (position_ == before) return true;
  }
}

// Reads the magic or one part from rest_, if it is complete.
bool BackupReader::read_next(std::string& data) {
  if (rest_.empty()) return true;
  if (ended_) return fail("damaged at byte " + std::to_string(position_) + ": bytes follow the end");
  if (!has_magic_) return read_magic();
  if (rest_.size() < kPartHeadBytes) return true;
  const uint32_t size = read_at<uint32_t>(rest_, 0);
  const size_t most = head_ ? kBackupPartBytes : kBackupHeadBytes;
  if (size > most || (size == 0 && !head_)) {
    return fail("damaged at byte " + std::to_string(position_) + ": a part of " + std::to_string(size) +
                " bytes is not possible there");
  }
  const size_t length = size == 0 ? kSumBytes : size;
  if (rest_.size() < kPartHeadBytes + length) return true;
  const std::string_view bytes = std::string_view(rest_).substr(kPartHeadBytes, length);
  if (crc_of(position_, size, bytes) != read_at<uint32_t>(rest_, 4)) {
    return fail("damaged at byte " + std::to_string(position_) + ": the checksum of the " +
                std::to_string(kPartHeadBytes + length) + " bytes from there on is wrong");
  }
  if (!(size == 0 ? read_end(bytes) : take_part(bytes, data))) return false;
  position_ += kPartHeadBytes + length;
  rest_.erase(0, kPartHeadBytes + length);
  return true;
}

bool BackupReader::read_magic() {
  const size_t got = std::min(rest_.size(), kBackupMagic.size());
  const auto wrong =
      std::mismatch(rest_.begin(), rest_.begin() + static_cast<ptrdiff_t>(got), kBackupMagic.begin());
  const auto at = static_cast<size_t>(wrong.first - rest_.begin());
  if (at < got) {
    return fail("damaged at byte " + std::to_string(at) +
                ": this is not a backup, or one of a newer version of Holdfast");
  }
  if (got < kBackupMagic.size()) return true;
  has_magic_ = true;
  position_ = kBackupMagic.size();
  rest_.erase(0, kBackupMagic.size());
  return true;
}

bool BackupReader::take_part(std::string_view bytes, std::string& data) {
  if (!head_) return read_head(bytes);
  sum_ = crc64(sum_, bytes);
  data_bytes_ += bytes.size();
  data += bytes;
  return true;
}

bool BackupReader::read_head(std::string_view text) {
  const std::string where = "the head at byte " + std::to_string(position_);
  BackupHead head;
  if (!take_number(text, "taken-us", head.taken_us) ||
      !take_number(text, "token-lead-us", head.token_lead_us) ||
      !take_number(text, "snapshot-bytes", head.snapshot_bytes)) {
    return fail(where + " lacks a number");
  }
  if (const std::string wrong = parse_meta(text, head.meta); !wrong.empty())
    return fail(where + ": meta: " + wrong);
  head_ = head;
  return true;
}

bool BackupReader::read_end(std::string_view bytes) {
  const std::string where = "damaged at byte " + std::to_string(position_) + ": ";
  if (data_bytes_ != head_->snapshot_bytes) {
    return fail(where + "the snapshot has " + std::to_string(data_bytes_) + " bytes, and the head says " +
                std::to_string(head_->snapshot_bytes));
  }
  if (read_at<uint64_t>(bytes, 0) != sum_) return fail(where + "the checksum of the snapshot is wrong");
  ended_ = true;
  return true;
}

bool BackupReader::finish() {
  if (!error_.empty()) return false;
  if (ended_) return true;
  return fail("cut off at byte " + std::to_string(position_ + rest_.size()) +
              ": the end of the backup is missing");
}

}  // namespace holdfast
