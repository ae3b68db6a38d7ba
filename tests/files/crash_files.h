// A folder in memory that distinguishes its content on disk from its unsynced content. Tests can crash the
// machine, fill the disk or make it fail at any point. One seed decides the result of a crash.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/os/files.h"
#include "simulation/dice.h"

namespace holdfast {

// It loses at least as much as real file systems do:
// - A first part of any length survives of a file's unsynced bytes. Its last sector may hold zeroes or
//   garbage instead. Synced bytes survive. An unsynced truncate() may have happened or not.
// - Each name that was created, changed or removed since the last sync_folder() is as before or as after,
//   independently of the others. So a synced file without a synced folder may have no name.
// - After a failed sync a file never reaches the disk again, and each later sync reports success.
class CrashFiles : public Files {
 public:
  // The machine crashes and starts again: open files become unusable, the lock is free, and pending faults
  // are dropped.
  void crash(uint64_t seed) {
    const std::scoped_lock guard(mutex_);
    simulation::Dice dice(seed);
    // Most file systems keep the order of such changes; with other file systems any change may be missing.
    const bool in_order = dice.one_in(2);
    const uint64_t happened = dice.below(changes_.size() + 1);
    for (size_t i = 0; i < changes_.size(); ++i) {
      if (in_order ? i < happened : dice.one_in(2)) changes_[i].apply(disk_names_);
    }
    names_ = disk_names_;
    changes_.clear();
    for (auto& [name, node] : names_) node->crash(dice);
    restart();
  }
  // The process ends; the system and all written data survive.
  void kill() {
    const std::scoped_lock guard(mutex_);
    restart();
  }

  // The disk as a crash just before a change would leave it, and the value of `mark` at that moment.
  struct Image {
    std::unique_ptr<CrashFiles> files;
    uint64_t mark;
  };
  // From now on, keeps an image before each change and each sync.
  void keep_images(std::function<uint64_t()> mark) {
    const std::scoped_lock guard(mutex_);
    mark_ = std::move(mark);
  }
  std::vector<Image> take_images() {
    const std::scoped_lock guard(mutex_);
    mark_ = nullptr;
    return std::exchange(images_, {});
  }

  // The n-th of the following writes (syncs, syncs of the folder) fails, or accepts only so many bytes. The
  // next one has n = 1.
  void fail_write(uint64_t n, int error) { set(write_fault_, {n, error}); }
  void shorten_write(uint64_t n, size_t bytes) {
    set(short_write_, {n, 0});
    short_bytes_ = std::max<size_t>(bytes, 1);
  }
  void fail_sync(uint64_t n, int error) { set(sync_fault_, {n, error}); }
  void fail_folder_sync(uint64_t n, int error) { set(folder_fault_, {n, error}); }
  // The number of writes (syncs) so far, so that a test can iterate over all of them.
  uint64_t writes() const { return writes_; }
  uint64_t syncs() const { return syncs_; }

  // Limits the total size of all files, in bytes; nullopt: no limit.
  void set_capacity(std::optional<uint64_t> bytes) {
    const std::scoped_lock guard(mutex_);
    capacity_bytes_ = bytes;
  }
  // The total size of all files, in bytes.
  uint64_t used_bytes() const {
    uint64_t used = 0;
    for (const auto& [name, node] : names_) used += node->bytes.size();
    return used;
  }
  void set_read_only(bool read_only) {
    const std::scoped_lock guard(mutex_);
    read_only_ = read_only;
  }
  // Removes the folder and its content. After restore_folder() there is an empty folder again, once it is
  // reopened.
  void remove_folder() {
    const std::scoped_lock guard(mutex_);
    names_.clear();
    disk_names_.clear();
    changes_.clear();
    gone_ = true;
    is_there_ = false;
  }
  void restore_folder() {
    const std::scoped_lock guard(mutex_);
    is_there_ = true;
  }
  // Adds a file as another program would, also to a folder that is not reopened yet.
  void put(const std::string& name, std::string bytes) {
    const std::scoped_lock guard(mutex_);
    auto node = std::make_shared<Node>();
    node->bytes = std::move(bytes);
    node->sync();
    names_[name] = disk_names_[name] = node;
  }
  // The names and bytes of all files, as the processes see them.
  std::map<std::string, std::string> contents() const {
    std::map<std::string, std::string> all;
    for (const auto& [name, node] : names_) all[name] = node->bytes;
    return all;
  }
  // Another process has the lock; 0: it released the lock.
  void lock_by_process(int pid) {
    const std::scoped_lock guard(mutex_);
    other_pid_ = pid;
  }
  // Returns the present bytes of a file, to read or to damage. The file must exist.
  std::string& bytes(const std::string& name) { return names_.at(name)->bytes; }

  const std::string& path() const override { return path_; }

  Result<std::unique_ptr<File>> open(const std::string& name) override {
    const std::scoped_lock guard(mutex_);
    const auto found = names_.find(name);
    if (found == names_.end()) return failure("open", name, ENOENT);
    return handle(found->second, false);
  }
  Result<std::unique_ptr<File>> append(const std::string& name) override {
    const std::scoped_lock guard(mutex_);
    return make(name, "open");
  }
  Result<std::unique_ptr<File>> create(const std::string& name, const std::string&) override {
    const std::scoped_lock guard(mutex_);
    Result<std::unique_ptr<File>> file = make(name, "create");
    if (file) names_.at(name)->truncate(0);
    return file;
  }

  Result<Done> rename(const std::string& from, const std::string& to) override {
    const std::scoped_lock guard(mutex_);
    if (const int error = change_error(); error != 0) return failure("rename", from, error);
    const auto found = names_.find(from);
    if (found == names_.end()) return failure("rename", from, ENOENT);
    change({to, found->second});
    return Done{};
  }
  Result<Done> remove(const std::string& name) override {
    const std::scoped_lock guard(mutex_);
    if (!names_.contains(name)) return Done{};
    if (const int error = change_error(); error != 0) return failure("remove", name, error);
    change({name, nullptr});
    return Done{};
  }
  Result<bool> exists(const std::string& name) override {
    const std::scoped_lock guard(mutex_);
    return names_.contains(name);
  }
  Result<std::vector<std::string>> list() override {
    const std::scoped_lock guard(mutex_);
    if (gone_) return failure("list", "", ENOENT);
    std::vector<std::string> names;
    for (const auto& [name, node] : names_) names.push_back(name);
    return names;
  }
  Result<Done> sync_folder() override {
    const std::scoped_lock guard(mutex_);
    keep_image();
    if (folder_fault_.is_now()) return failure("sync", "", folder_fault_.error);
    for (const Change& c : changes_) c.apply(disk_names_);
    changes_.clear();
    return Done{};
  }

  Result<Done> lock() override {
    const std::scoped_lock guard(mutex_);
    if (gone_) return failure("open", "lock", ENOENT);
    if (other_pid_ == 0) return Done{};
    return Failure{"the folder " + path_ + " is in use by process " + std::to_string(other_pid_) +
                   "; each server needs its own"};
  }
  bool folder_removed() override {
    const std::scoped_lock guard(mutex_);
    return gone_;
  }
  Result<Done> reopen_folder() override {
    const std::scoped_lock guard(mutex_);
    if (!is_there_) return failure("open", "", ENOENT);
    gone_ = false;
    return Done{};
  }

 private:
  // A file, independent of its names. The disk has the first `synced` bytes, followed by `cut`.
  struct Node {
    std::string bytes;
    size_t synced = 0;
    std::string cut;         // bytes that an unsynced truncation removed
    bool is_broken = false;  // by a failed sync

    void truncate(size_t size) {
      if (size < synced) {
        cut.insert(0, bytes, size, synced - size);
        synced = size;
      }
      bytes.resize(size);
    }
    void sync() {
      if (is_broken) return;
      synced = bytes.size();
      cut.clear();
    }
    void crash(simulation::Dice& dice) {
      if (!cut.empty() && dice.one_in(2)) {
        bytes.resize(synced);
        bytes += cut;
      } else {
        bytes.resize(synced + dice.below(bytes.size() - synced + 1));
        spoil_last_sector(dice);
      }
      is_broken = false;
      sync();
    }
    void spoil_last_sector(simulation::Dice& dice) {
      constexpr size_t kSectorBytes = 512;
      const uint64_t kind = dice.below(3);
      if (kind == 0 || bytes.size() == synced) return;
      for (size_t at = std::max(synced, (bytes.size() - 1) / kSectorBytes * kSectorBytes);
           at < bytes.size(); ++at) {
        bytes[at] = kind == 1 ? '\0' : static_cast<char>(dice.below(256));
      }
    }
  };
  using Names = std::map<std::string, std::shared_ptr<Node>>;

  // Makes the name the node's only one; with a null node, removes the name.
  struct Change {
    std::string name;
    std::shared_ptr<Node> node;

    void apply(Names& names) const {
      std::erase_if(names, [this](const auto& n) { return n.first == name || n.second == node; });
      if (node != nullptr) names[name] = node;
    }
  };

  struct Fault {
    uint64_t left = 0;
    int error = 0;

    bool is_now() { return left > 0 && --left == 0; }
  };

  class Handle : public File {
   public:
    Handle(CrashFiles& files, std::shared_ptr<Node> node, bool writes)
        : files_(files), node_(std::move(node)), writes_(writes), process_(files.process_) {}

    Written write(std::string_view bytes) override {
      const std::scoped_lock guard(files_.mutex_);
      if (!is_open() || !writes_) return {0, EBADF};
      return files_.write(*node_, bytes);
    }
    int sync() override {
      const std::scoped_lock guard(files_.mutex_);
      if (!is_open()) return EBADF;
      return files_.sync(node_);
    }
    int truncate(uint64_t size) override {
      const std::scoped_lock guard(files_.mutex_);
      if (!is_open() || !writes_) return EBADF;
      if (files_.read_only_) return EROFS;
      files_.keep_image();
      node_->truncate(std::min(size, uint64_t{node_->bytes.size()}));
      return 0;
    }
    Result<size_t> read(uint64_t offset, std::span<char> into) override {
      const std::scoped_lock guard(files_.mutex_);
      if (!is_open()) return files_.failure("read", "", EBADF);
      if (offset >= node_->bytes.size()) return size_t{0};
      return node_->bytes.copy(into.data(), into.size(), offset);
    }
    Result<uint64_t> size() override {
      const std::scoped_lock guard(files_.mutex_);
      if (!is_open()) return files_.failure("inspect", "", EBADF);
      return uint64_t{node_->bytes.size()};
    }

   private:
    bool is_open() const { return process_ == files_.process_; }

    CrashFiles& files_;
    std::shared_ptr<Node> node_;
    bool writes_;
    uint64_t process_;
  };

  Failure failure(const std::string& what, const std::string& name, int error) const {
    return {"cannot " + what + " " + path_ + (name.empty() ? "" : "/") + name + ": " +
            std::strerror(error)};
  }
  void set(Fault& fault, Fault to) {
    const std::scoped_lock guard(mutex_);
    fault = to;
  }
  void restart() {
    ++process_;
    write_fault_ = short_write_ = sync_fault_ = folder_fault_ = {};
  }

  int change_error() const { return gone_ ? ENOENT : read_only_ ? EROFS : 0; }
  void change(Change c) {
    keep_image();
    c.apply(names_);
    changes_.push_back(std::move(c));
  }
  Result<std::unique_ptr<File>> make(const std::string& name, const char* what) {
    if (const int error = change_error(); error != 0) return failure(what, name, error);
    if (!names_.contains(name)) change({name, std::make_shared<Node>()});
    return handle(names_.at(name), true);
  }
  std::unique_ptr<File> handle(std::shared_ptr<Node> node, bool writes) {
    return std::make_unique<Handle>(*this, std::move(node), writes);
  }

  uint64_t free_bytes() const {
    if (!capacity_bytes_) return UINT64_MAX;
    const uint64_t used = used_bytes();
    return *capacity_bytes_ > used ? *capacity_bytes_ - used : 0;
  }
  void keep_image() {
    if (mark_ == nullptr) return;
    auto copy = std::make_unique<CrashFiles>();
    std::map<std::shared_ptr<Node>, std::shared_ptr<Node>> nodes;
    const auto copied = [&nodes](const std::shared_ptr<Node>& node) {
      auto& there = nodes[node];
      if (there == nullptr && node != nullptr) there = std::make_shared<Node>(*node);
      return there;
    };
    for (const auto& [name, node] : names_) copy->names_[name] = copied(node);
    for (const auto& [name, node] : disk_names_) copy->disk_names_[name] = copied(node);
    for (const Change& c : changes_) copy->changes_.push_back({c.name, copied(c.node)});
    images_.push_back({std::move(copy), mark_()});
  }
  Written write(Node& node, std::string_view bytes) {
    keep_image();
    ++writes_;
    if (write_fault_.is_now()) return {0, write_fault_.error};
    if (read_only_) return {0, EROFS};
    if (short_write_.is_now()) bytes = bytes.substr(0, short_bytes_);
    const std::string_view taken = bytes.substr(0, free_bytes());
    if (taken.empty() && !bytes.empty()) return {0, ENOSPC};
    node.bytes += taken;
    return {taken.size(), 0};
  }
  int sync(const std::shared_ptr<Node>& node) {
    keep_image();
    ++syncs_;
    if (sync_fault_.is_now()) {
      node->is_broken = true;
      return sync_fault_.error;
    }
    node->sync();
    const bool has_name =
        std::any_of(names_.begin(), names_.end(), [&](const auto& n) { return n.second == node; });
    return has_name ? 0 : ENOENT;
  }

  std::mutex mutex_;
  const std::string path_ = "folder";
  Names names_;
  Names disk_names_;
  std::vector<Change> changes_;  // the changes from disk_names_ to names_
  uint64_t process_ = 0;         // number of the present process; handles of earlier ones are closed
  Fault write_fault_, short_write_, sync_fault_, folder_fault_;
  size_t short_bytes_ = 0;
  uint64_t writes_ = 0;
  uint64_t syncs_ = 0;
  std::optional<uint64_t> capacity_bytes_;
  bool read_only_ = false;
  bool gone_ = false;
  bool is_there_ = true;
  int other_pid_ = 0;
  std::function<uint64_t()> mark_;  // null: no images
  std::vector<Image> images_;
};

}  // namespace holdfast
