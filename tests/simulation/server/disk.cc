// Operations that take time, and that fail once their process is dead.
#include "disk.h"

#include <cerrno>
#include <utility>

#include "loop.h"
#include "scheduler.h"

namespace holdfast::simulation {
namespace {

Failure killed() { return {"the process was killed"}; }

class ProcessFile : public File {
 public:
  ProcessFile(Disk& disk, std::unique_ptr<File> file, std::string name)
      : disk_(disk), file_(std::move(file)), name_(std::move(name)) {}

  Written write(std::string_view bytes) override {
    if (!disk_.begin(DiskWork::kWrite, name_)) return {0, EIO};
    const Written written = file_->write(bytes);
    if (written.error == 0) disk_.end(DiskWork::kWrite, name_);
    return written;
  }
  int sync() override {
    if (!disk_.begin(DiskWork::kSync, name_)) return EIO;
    const int error = file_->sync();
    if (error == 0) disk_.end(DiskWork::kSync, name_);
    return error;
  }
  int truncate(uint64_t size) override {
    return disk_.begin(DiskWork::kWrite, name_) ? file_->truncate(size) : EIO;
  }
  Result<size_t> read(uint64_t offset, std::span<char> into) override {
    if (!disk_.begin(DiskWork::kRead, name_)) return killed();
    return file_->read(offset, into);
  }
  Result<uint64_t> size() override { return file_->size(); }

 private:
  Disk& disk_;
  std::unique_ptr<File> file_;
  std::string name_;
};

class ProcessFiles : public Files {
 public:
  explicit ProcessFiles(Disk& disk) : disk_(disk), files_(disk.files()) {}

  const std::string& path() const override { return files_.path(); }
  Result<std::unique_ptr<File>> open(const std::string& name) override {
    return opened(DiskWork::kRead, name, [&] { return files_.open(name); });
  }
  Result<std::unique_ptr<File>> append(const std::string& name) override {
    return opened(DiskWork::kCreate, name, [&] { return files_.append(name); });
  }
  Result<std::unique_ptr<File>> create(const std::string& name, const std::string& like) override {
    return opened(DiskWork::kCreate, name, [&] { return files_.create(name, like); });
  }
  Result<Done> rename(const std::string& from, const std::string& to) override {
    return change(DiskWork::kRename, to, [&] { return files_.rename(from, to); });
  }
  Result<Done> remove(const std::string& name) override {
    return change(DiskWork::kRemove, name, [&] { return files_.remove(name); });
  }
  Result<bool> exists(const std::string& name) override {
    if (!disk_.begin(DiskWork::kRead, name)) return killed();
    return files_.exists(name);
  }
  Result<std::vector<std::string>> list() override {
    if (!disk_.begin(DiskWork::kRead, "")) return killed();
    return files_.list();
  }
  Result<Done> sync_folder() override {
    return change(DiskWork::kSyncFolder, "", [&] { return files_.sync_folder(); });
  }
  Result<Done> lock() override { return files_.lock(); }
  bool folder_removed() override { return files_.folder_removed(); }
  Result<Done> reopen_folder() override {
    if (Loop::get().dead()) return killed();
    return files_.reopen_folder();
  }

 private:
  template <class Open>
  Result<std::unique_ptr<File>> opened(DiskWork work, const std::string& name, Open open) {
    if (!disk_.begin(work, name)) return killed();
    Result<std::unique_ptr<File>> file = open();
    if (!file) return file;
    disk_.end(work, name);
    return std::unique_ptr<File>(std::make_unique<ProcessFile>(disk_, std::move(*file), name));
  }
  template <class Change>
  Result<Done> change(DiskWork work, const std::string& name, Change change) {
    if (!disk_.begin(work, name)) return killed();
    Result<Done> done = change();
    if (done) disk_.end(work, name);
    return done;
  }

  Disk& disk_;
  CrashFiles& files_;
};

}  // namespace

std::unique_ptr<Files> Disk::folder() { return std::make_unique<ProcessFiles>(*this); }

bool Disk::begin(DiskWork work, const std::string& name) {
  if (Loop::get().dead()) return false;
  if (events_.before) events_.before(work, name);
  ++operations_;
  Scheduler& scheduler = Scheduler::get();
  if (halt_in_ > 0 && --halt_in_ == 0) scheduler.halt();
  const bool syncs = work == DiskWork::kSync || work == DiskWork::kSyncFolder;
  constexpr int64_t kFraction = 30;  // of a sync's time, for work in the system's memory
  const int64_t most_us = syncs ? sync_us_ : sync_us_ / kFraction;
  scheduler.pause_until(scheduler.now_us() + dice_.between(most_us / 10, most_us));
  return !Loop::get().dead();
}

void Disk::end(DiskWork work, const std::string& name) {
  if (events_.after) events_.after(work, name);
}

}  // namespace holdfast::simulation
