// Writes and reads one line per field, in a fixed order.
#include "core/codec/meta.h"

#include <algorithm>
#include <charconv>

#include "core/base/checksum.h"
#include "core/base/parse.h"

namespace holdfast {

namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

std::string crc_line(std::string_view before) {
  const uint32_t crc = crc32c(before);
  std::string line = "crc ";
  for (unsigned shift = 32; shift > 0; shift -= 4) line += kHexDigits[(crc >> (shift - 4)) & 0xFU];
  return line + "\n";
}

bool read_hex(std::string_view digits, std::string& out) {
  if (digits.size() % 2 != 0) return false;
  for (size_t i = 0; i < digits.size(); i += 2) {
    const size_t high = kHexDigits.find(digits[i]);
    const size_t low = kHexDigits.find(digits[i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return false;
    out += static_cast<char>(high << 4U | low);
  }
  return true;
}

// Returns the fields of the lines one after the other. The first invalid line is the error.
class MetaReader {
 public:
  explicit MetaReader(std::string_view text) : rest_(text) {}

  const std::string& error() const { return error_; }

  std::string_view text(std::string_view name) {
    ++line_;
    const size_t end = rest_.find('\n');
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    if (!line.starts_with(name) || line.substr(name.size(), 1) != " ") return fail(name, "is missing");
    return line.substr(name.size() + 1);
  }

  template <class T>
  T number(std::string_view name) {
    const std::string_view digits = text(name);
    T n = 0;
    const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
    // The number must have the same text when it is written again, so that "007" is not read as 7.
    if (fault == std::errc() && std::to_string(n) == digits) return n;
    fail(name, "is not a number in range");
    return 0;
  }

  // A number, a blank, and the key in hex.
  AheadToken ahead(std::string_view name) {
    const std::string_view line = text(name);
    const size_t blank = std::min(line.find(' '), line.size());
    AheadToken out;
    const auto [end, fault] = std::from_chars(line.data(), line.data() + blank, out.token);
    const bool number = fault == std::errc() && std::to_string(out.token) == line.substr(0, blank);
    if (!number || blank == line.size() || !read_hex(line.substr(blank + 1), out.key))
      fail(name, "is not a token and a key in hexadecimal digits");
    return out;
  }

  std::string folder_id(std::string_view name) {
    const std::string_view id = text(name);
    if (!is_folder_id(id)) fail(name, "is not 40 hexadecimal digits");
    return std::string(id);
  }

  bool yes_or_no(std::string_view name) {
    const std::string_view word = text(name);
    if (word != "yes" && word != "no") fail(name, "is neither yes nor no");
    return word == "yes";
  }

  void end() {
    ++line_;
    if (!rest_.empty()) fail("the last line", "is followed by more");
  }

 private:
  std::string_view fail(std::string_view name, std::string_view what) {
    if (error_.empty())
      error_.append("line ")
          .append(std::to_string(line_))
          .append(": ")
          .append(name)
          .append(" ")
          .append(what);
    return {};
  }

  std::string_view rest_;
  int line_ = 0;
  std::string error_;
};

// Checked first: a newer version may have another form of the other lines and of the checksum.
bool is_newer(std::string_view text, uint32_t& version) {
  MetaReader in(text);
  version = in.number<uint32_t>("version");
  return in.error().empty() && version > kMetaVersion;
}

std::string read_fields(std::string_view text, Meta& meta) {
  MetaReader in(text);
  Meta read;
  read.version = in.number<uint32_t>("version");
  if (in.error().empty() && read.version < kFirstMetaVersion)
    return "line 1: unsupported version " + std::to_string(read.version);
  read.id = in.folder_id("id");
  read.token_reserve = in.number<uint64_t>("token-reserve");
  read.token_max = in.number<uint64_t>("token-max");
  read.horizon_ms = in.number<int64_t>("horizon-ms");
  read.boot_id = in.text("boot-id");
  if (read.version != kFirstMetaVersion) {
    read.clock_boot_id = in.text("clock-boot-id");
    read.clock_ms = in.number<int64_t>("clock-ms");
    read.horizon_boot_ms = in.number<int64_t>("horizon-boot-ms");
  }
  if (read.version >= kSequenceMetaVersion) read.journal_sequence = in.number<uint64_t>("journal-sequence");
  if (read.version >= kAheadMetaVersion) {
    const auto keys = in.number<uint64_t>("tokens-ahead");
    for (uint64_t i = 0; i < keys && in.error().empty(); ++i)
      read.tokens_ahead.push_back(in.ahead("ahead"));
  }
  read.clean = in.yes_or_no("clean");
  in.end();
  if (!in.error().empty()) return in.error();
  meta = read;
  return {};
}

}  // namespace

bool is_folder_id(std::string_view text) {
  return text.size() == kFolderIdDigits && text.find_first_not_of(kHexDigits) == std::string_view::npos;
}

bool kept_writes(const Meta& meta, std::string_view boot_id) {
  return meta.clean || (!meta.boot_id.empty() && meta.boot_id == boot_id);
}

std::string format_meta(const Meta& meta) {
  const uint32_t version =
      meta.tokens_ahead.empty() ? meta.version : std::max(meta.version, kAheadMetaVersion);
  std::string text = "version " + std::to_string(version) + "\nid " + meta.id;
  text += "\ntoken-reserve " + std::to_string(meta.token_reserve);
  text += "\ntoken-max " + std::to_string(meta.token_max);
  text += "\nhorizon-ms " + std::to_string(meta.horizon_ms) + "\nboot-id " + meta.boot_id;
  if (meta.version != kFirstMetaVersion) {
    text += "\nclock-boot-id " + meta.clock_boot_id + "\nclock-ms " + std::to_string(meta.clock_ms);
    text += "\nhorizon-boot-ms " + std::to_string(meta.horizon_boot_ms);
  }
  if (meta.version >= kSequenceMetaVersion)
    text += "\njournal-sequence " + std::to_string(meta.journal_sequence);
  if (version >= kAheadMetaVersion) {
    text += "\ntokens-ahead " + std::to_string(meta.tokens_ahead.size());
    for (const AheadToken& own : meta.tokens_ahead) {
      text += "\nahead " + std::to_string(own.token) + " ";
      append_hex(text, {reinterpret_cast<const uint8_t*>(own.key.data()), own.key.size()});
    }
  }
  text += meta.clean ? "\nclean yes\n" : "\nclean no\n";
  return text + crc_line(text);
}

bool is_newer_meta(std::string_view text) {
  uint32_t version = 0;
  return is_newer(text, version);
}

std::string parse_meta(std::string_view text, Meta& meta) {
  if (text.empty()) return "line 1: the file is empty";
  if (uint32_t version = 0; is_newer(text, version)) {
    return "line 1: version " + std::to_string(version) + ", written by a newer version of Holdfast";
  }
  const auto lines = std::count(text.begin(), text.end(), '\n');
  if (text.back() != '\n') return "line " + std::to_string(lines + 1) + ": the file is incomplete";
  const size_t last = text.substr(0, text.size() - 1).rfind('\n') + 1;  // 0 if there is one line
  const std::string due = crc_line(text.substr(0, last));
  if (text.substr(last) == due) return read_fields(text.substr(0, last), meta);
  const std::string where = "line " + std::to_string(lines);
  if (text.substr(last, 4) != "crc ")
    return where + ": the file is incomplete, the line with the checksum is missing";
  return where + ": the checksum is wrong, the lines before it have " + due.substr(0, due.size() - 1);
}

}  // namespace holdfast
