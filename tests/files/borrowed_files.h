// A disk that outlives the process that uses it: forwards calls to another Files until the process dies.
#pragma once

#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/os/files.h"

namespace holdfast {

// Belongs to one simulated process. `disk` must outlive it.
class BorrowedFiles : public Files {
 public:
  // Once `dead` is true, no call of this process reaches the disk.
  BorrowedFiles(Files& disk, std::shared_ptr<const bool> dead) : disk_(disk), dead_(std::move(dead)) {}

  const std::string& path() const override { return disk_.path(); }
  Result<std::unique_ptr<File>> open(const std::string& name) override {
    if (*dead_) return killed();
    return disk_.open(name);
  }
  Result<std::unique_ptr<File>> append(const std::string& name) override {
    if (*dead_) return killed();
    return disk_.append(name);
  }
  Result<std::unique_ptr<File>> create(const std::string& name, const std::string& like) override {
    if (*dead_) return killed();
    return disk_.create(name, like);
  }
  Result<Done> rename(const std::string& from, const std::string& to) override {
    if (*dead_) return killed();
    return disk_.rename(from, to);
  }
  Result<Done> remove(const std::string& name) override {
    if (*dead_) return killed();
    return disk_.remove(name);
  }
  Result<bool> exists(const std::string& name) override {
    if (*dead_) return killed();
    return disk_.exists(name);
  }
  Result<std::vector<std::string>> list() override {
    if (*dead_) return killed();
    return disk_.list();
  }
  Result<Done> sync_folder() override {
    if (*dead_) return killed();
    return disk_.sync_folder();
  }
  Result<Done> lock() override { return disk_.lock(); }
  bool folder_removed() override { return disk_.folder_removed(); }
  Result<Done> reopen_folder() override { return disk_.reopen_folder(); }

 private:
  static Failure killed() { return {"the process was killed"}; }

  Files& disk_;
  std::shared_ptr<const bool> dead_;
};

}  // namespace holdfast
