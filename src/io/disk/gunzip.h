// Reads a file as it is, or unpacked where it is gzip: told by its first bytes.
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

  // The next bytes; empty at the end. They live until the next call. An error says where in the file.
  Result<std::string_view> next();

  uint64_t size() const { return size_; }        // of the file
  uint64_t consumed() const { return offset_; }  // of the file

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
  bool at_end_ = false;  // of the file
  uint64_t size_ = 0;
  uint64_t offset_ = 0;
};

}  // namespace holdfast
