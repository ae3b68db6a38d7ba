// Pages of memory for arenas. The first access to a fresh huge page takes milliseconds on some machines:
// the system clears it, and a host may have to find it first. So a shell that must not block makes spare
// pages on another thread, and gives them to the pool. To unmap a page takes a part of a millisecond too,
// so that the same shell frees pages on another thread. Only make_ready() is thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace holdfast {

class PagePool {
 public:
  static constexpr size_t kPageBytes = size_t{2} << 20U;  // a huge page, where the system has them
  static constexpr size_t kFewestSpares = 2;
  static constexpr size_t kMostSpares = 8;
  static constexpr size_t kSmallPages = 2;  // taken before spares are wanted
  static constexpr size_t kMostUnneeded = 64;
  struct FreePage {
    void operator()(char* page) const;
  };
  using Page = std::unique_ptr<char[], FreePage>;

  // Returns a page that is already mapped, so that access to it is fast. Any thread may call it.
  static Page make_ready();

  // Tells the pool that the shell gives spares, and frees pages. If no spare is there, take() returns
  // memory in small pages, which the system maps one by one as they are used.
  void expect_spares() { expects_spares_ = true; }
  // Returns the number of spares that are missing. It is 0 for a small keyspace, which needs no more memory
  // than it uses, and grows with the number of taken pages, as large keyspaces grow fast.
  size_t wanted() const;
  void give(Page page) { spares_.push_back(std::move(page)); }

  Page take();
  // Takes back a page that is no longer needed. The shell frees it. The pool does if there is no such
  // shell, and if too many wait already.
  void give_back(Page page) {
    if (expects_spares_ && unneeded_.size() < kMostUnneeded) unneeded_.push_back(std::move(page));
  }
  size_t unneeded() const { return unneeded_.size(); }
  // The pages to free. Any thread may free them.
  std::vector<Page> take_unneeded() { return std::exchange(unneeded_, {}); }
  // Frees one of them. Returns false if there is none.
  bool free_unneeded() {
    if (unneeded_.empty()) return false;
    unneeded_.pop_back();
    return true;
  }

 private:
  std::vector<Page> spares_;
  size_t taken_ = 0;
  bool expects_spares_ = false;
  std::vector<Page> unneeded_;
};

}  // namespace holdfast
