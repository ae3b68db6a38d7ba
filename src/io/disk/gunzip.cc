// Decompresses with ISA-L. Bytes after the first gzip member are an error: no snapshot has two members.
#include "io/disk/gunzip.h"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast {

Result<std::unique_ptr<Gunzip>> Gunzip::open(Files& files, const std::string& name) {
  auto file = files.open(name);
  if (!file) return Failure{file.error()};
  auto size = (*file)->size();
  if (!size) return Failure{size.error()};
  std::unique_ptr<Gunzip> in(new Gunzip(std::move(*file)));
  in->size_ = *size;
  if (Result<bool> filled = in->fill(); !filled) return Failure{filled.error()};
  constexpr unsigned char kMagic[] = {0x1f, 0x8b};
  in->packed_ = in->input_.size() >= 2 && static_cast<unsigned char>(in->input_[0]) == kMagic[0] &&
                static_cast<unsigned char>(in->input_[1]) == kMagic[1];
  if (in->packed_) {
    in->output_.resize(size_t{1} << 20U);
    isal_inflate_init(&in->state_);
    in->state_.crc_flag = ISAL_GZIP;
    in->state_.next_in = reinterpret_cast<uint8_t*>(in->input_.data());
    in->state_.avail_in = static_cast<uint32_t>(in->input_.size());
  }
  return in;
}

// Reads the next bytes of the file into input_. Returns false at the end of the file.
Result<bool> Gunzip::fill() {
  input_.resize(kBytes);
  Result<size_t> got = file_->read(offset_, input_);
  if (!got) return Failure{got.error()};
  input_.resize(*got);
  offset_ += *got;
  at_end_ = *got == 0;
  return *got > 0;
}

Result<std::string_view> Gunzip::next() {
  if (packed_) return unpack();
  if (at_end_) return std::string_view{};
  if (output_.empty()) {  // open() has already read the first bytes
    output_.swap(input_);
    return std::string_view(output_.data(), output_.size());
  }
  if (Result<bool> filled = fill(); !filled) return Failure{filled.error()};
  return std::string_view(input_.data(), input_.size());
}

Result<std::string_view> Gunzip::unpack() {
  state_.next_out = reinterpret_cast<uint8_t*>(output_.data());
  state_.avail_out = static_cast<uint32_t>(output_.size());
  while (state_.avail_out > 0) {
    if (state_.block_state == ISAL_BLOCK_FINISH) {
      if (state_.avail_in > 0)
        return Failure{
            fmt::format("bytes follow the end of the gzip stream, at byte {}", offset_ - state_.avail_in)};
      break;
    }
    if (state_.avail_in == 0) {
      Result<bool> filled = fill();
      if (!filled) return Failure{filled.error()};
      if (!*filled)
        return Failure{fmt::format("the file ends at byte {}, before the end of its gzip stream", offset_)};
      state_.next_in = reinterpret_cast<uint8_t*>(input_.data());
      state_.avail_in = static_cast<uint32_t>(input_.size());
    }
    const int error = isal_inflate(&state_);
    if (error < 0) {
      return Failure{fmt::format("its gzip stream is damaged before byte {}", offset_ - state_.avail_in)};
    }
  }
  return std::string_view(output_.data(), output_.size() - state_.avail_out);
}

}  // namespace holdfast
