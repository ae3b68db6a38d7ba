// The text of JSON. A reply becomes JSON in one pass, without a tree, as it may have thousands of rows.
#include "io/http/json.h"

#include <charconv>
#include <optional>

#include "io/http/url.h"

namespace holdfast {
namespace {

constexpr int kMaxDepth = 8;

// A character that looks like nothing, or that changes the order of the characters around it.
bool is_invisible(uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || (c >= 0x200b && c <= 0x200f) ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || c >= 0xe0000;
}

// The length of the UTF-8 character at the front; 0 if there is no valid and visible one.
size_t visible_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return is_invisible(first) ? 0 : 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  uint32_t c = first & (0xffU >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return 0;
    c = c << 6U | (byte(i) & 0x3fU);
  }
  const bool shorter = (length == 3 && c < 0x800) || (length == 4 && c < 0x10000);
  const bool valid = !shorter && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
  return valid && !is_invisible(c) ? length : 0;
}

// Reads one reply and writes it as JSON.
class Converter {
 public:
  Converter(std::string& out, std::string_view reply, std::span<const JsonName> names)
      : out_(out), rest_(reply), names_(names) {}

  bool value(int depth = 0) {
    const std::optional<std::string_view> line = head();
    if (!line || depth > kMaxDepth) return false;
    const char type = (*line)[0];
    if (type == '%') return map(number(*line), depth);
    if (type == '*' || type == '~' || type == '>') return array(number(*line), depth);
    return scalar(type, *line);
  }
  std::string_view rest() const { return rest_; }
  bool cut() const { return cut_; }

 private:
  // The line at the front, without its end.
  std::optional<std::string_view> head() {
    const size_t end = rest_.find("\r\n");
    if (end == std::string_view::npos || end == 0) return std::nullopt;
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 2);
    return line;
  }
  static int64_t number(std::string_view line) {
    int64_t n = -1;
    std::from_chars(line.data() + 1, line.data() + line.size(), n);
    return n;
  }
  std::optional<std::string_view> bulk(int64_t size) {
    if (size < 0 || static_cast<uint64_t>(size) + 2 > rest_.size()) return std::nullopt;
    const std::string_view text = rest_.substr(0, static_cast<size_t>(size));
    rest_.remove_prefix(text.size() + 2);
    return text;
  }

  bool scalar(char type, std::string_view line) {
    if (type == '$') {
      if (number(line) < 0) return out_ += "null", true;
      const std::optional<std::string_view> text = bulk(number(line));
      if (text) append_json_text(out_, *text);
      return text.has_value();
    }
    if (type == ':' || type == ',') return out_ += line.substr(1), true;
    if (type == '_') return out_ += "null", true;
    if (type == '#') return out_ += line == "#t" ? "true" : "false", true;
    append_json_text(out_, line.substr(1));
    return true;
  }

  bool array(int64_t n, int depth) {
    if (n < 0) return out_ += "null", true;
    out_ += '[';
    for (int64_t i = 0; i < n && !cut_; ++i) {
      const size_t before = out_.size();
      if (!value(depth + 1)) {
        out_.resize(before);
        cut_ = true;
        rest_ = {};
        break;
      }
      out_ += ',';
    }
    close_json(out_, ']');
    return true;
  }

  bool map(int64_t n, int depth) {
    if (n < 0) return false;
    out_ += '{';
    for (int64_t i = 0; i < n && !cut_; ++i) {
      if (!field(depth)) return false;
      out_ += ',';
    }
    close_json(out_, '}');
    return true;
  }

  bool field(int depth) {
    const std::optional<std::string_view> line = head();
    if (!line || (*line)[0] != '$') return false;
    const std::optional<std::string_view> name = bulk(number(*line));
    if (!name) return false;
    if (*name == "key") return key();
    append_json_text(out_, json_name(*name));
    out_ += ':';
    return value(depth + 1);
  }
  bool key() {
    const std::optional<std::string_view> line = head();
    if (!line) return false;
    const std::optional<std::string_view> bytes = bulk(number(*line));
    if (!bytes) return false;
    append_field(out_, "key", *bytes);
    out_ += "\"key_id\":\"" + percent_encoded(*bytes) + '"';
    return true;
  }

  std::string_view json_name(std::string_view name) const {
    for (const JsonName& known : names_) {
      if (known.reply == name) return known.json;
    }
    return name;
  }

  std::string& out_;
  std::string_view rest_;
  std::span<const JsonName> names_;
  bool cut_ = false;
};

}  // namespace

void append_json_text(std::string& out, std::string_view bytes) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  while (!bytes.empty()) {
    const size_t length = visible_length(bytes);
    const auto byte = static_cast<unsigned char>(bytes[0]);
    if (length == 0) {
      out.append("\\\\x").push_back(kHex[byte >> 4U]);
      out += kHex[byte & 15U];
    } else if (byte == '"' || byte == '\\') {
      out.append("\\").push_back(bytes[0]);
    } else if (byte == '<') {  // so that no page can take it for markup
      out += "\\u003c";
    } else {
      out += bytes.substr(0, length);
    }
    bytes.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

void append_field(std::string& out, std::string_view name, std::string_view value) {
  append_json_text(out, name);
  out += ':';
  append_json_text(out, value);
  out += ',';
}
void append_field(std::string& out, std::string_view name, int64_t value) {
  append_json_text(out, name);
  out.append(":").append(std::to_string(value)).push_back(',');
}
void append_field(std::string& out, std::string_view name, bool value) {
  append_json_text(out, name);
  out += value ? ":true," : ":false,";
}

void close_json(std::string& out, char end) {
  if (out.back() == ',') out.pop_back();
  out += end;
}

size_t append_json(std::string& out, std::string_view reply, std::span<const JsonName> names, bool& cut) {
  Converter converter(out, reply, names);
  if (!converter.value()) return 0;
  cut = converter.cut();
  return cut ? reply.size() : reply.size() - converter.rest().size();
}

}  // namespace holdfast
