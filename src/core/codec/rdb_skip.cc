// Skips the parts of an RDB file that this server cannot load: values and data of modules.
#include "core/codec/rdb.h"
#include "core/codec/rdb_input.h"
#include "core/codec/rdb_reader.h"

namespace holdfast {

namespace {

std::string_view name_of(uint8_t type) {
  switch (type) {
    case 6:
    case rdb::kTypeModule:
      return "module value";
    case 15:
    case 19:
    case 21:
      return "stream";
    default:
      return {};
  }
}

}  // namespace

void RdbReader::skip_value(Input& in, uint8_t type) {
  if (name_of(type).empty()) return static_cast<void>(in.wrong("an item of an unknown type"));
  const std::string_view key = in.text(key_text_);
  if (!in.good()) return;
  const std::string what = "the key '" + std::string(key) + "' is a " + std::string(name_of(type));
  if (!skip_unknown_) {
    return static_cast<void>(in.wrong(what +
                                      ", an unsupported type (--skip-unsupported-types yes skips the "
                                      "values of modules)"));
  }
  if (type != rdb::kTypeModule) {
    return static_cast<void>(
        in.wrong(what + ", an unsupported type that cannot be skipped: delete the key in Redis first"));
  }
  in.length();  // the module's id
  if (!in.good()) return;
  sink_.skipped(db_, key, name_of(type));
  end_key();
  state_ = State::kModule;
}

void RdbReader::skip_module_data(Input& in) {
  if (!skip_unknown_)
    return static_cast<void>(
        in.wrong("unsupported: data of a module (--skip-unsupported-types yes skips it)"));
  in.length();  // the module's id
  in.length();
  in.length();  // the time at which Redis loads it: before or after the keys
  if (in.good()) state_ = State::kModule;
}

// Reads a number that names a part's kind, and the part.
void RdbReader::skip_module_part(Input& in) {
  switch (in.length()) {
    case 0:
      if (in.good()) state_ = State::kItem;
      return;
    case 1:
    case 2:
      in.length();
      return;
    case 3:
      in.take(4);
      return;
    case 4:
      in.take(8);
      return;
    case 5:
      in.text(value_text_);
      return;
    default:
      in.wrong("a module's value has a part of an unknown type");
  }
}

}  // namespace holdfast
