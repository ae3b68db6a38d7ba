// Reads a file, and decompresses it if it is gzip. The first bytes of the file tell which.
#pragma once

#include <isa-l/igzip_lib.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/os/files.h"

namespace holdfast {

class Gunzip {
 public:
  static Result<std::unique_ptr<Gunzip>> open(Files& files, const std::string& name);

  // Returns the next bytes; empty at the end of the file. They are valid until the next call. An error
  // names the position in the file.
  Result<std::string_view> next();

  uint64_t size() const { return size_; }        // bytes in the file
  uint64_t consumed() const { return offset_; }  // bytes read of the file

 private:
  explicit Gunzip(std::unique_ptr<File> file) : file_(std::move(file)), input_(kBytes) {}
  Result<bool> fill();
  Result<std::string_view> unpack();

  static constexpr size_t kBytes = size_t{256} << 10U;
  std::unique_ptr<File> file_;
  std::vector<char> input_;
  std::vector<char> output_;
  inflate_state state_;
  bool packed_ = false;
  bool at_end_ = false;  // the file has no more bytes
  uint64_t size_ = 0;
  uint64_t offset_ = 0;
};

}  // namespace holdfast
