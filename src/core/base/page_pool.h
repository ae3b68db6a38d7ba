// Pages of memory for arenas. The first access to a fresh huge page takes milliseconds on some machines:
// the system clears it, and a host may have to find it first. So a shell that must not block makes spare
// pages on another thread, and gives them to the pool. Only make_ready() is thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace holdfast {

class PagePool {
 public:
  static constexpr size_t kPageBytes = size_t{2} << 20U;  // a huge page, where the system has them
  static constexpr size_t kFewestSpares = 2;
  static constexpr size_t kMostSpares = 8;
  static constexpr size_t kSmallPages = 2;  // taken before spares are wanted
  struct FreePage {
    void operator()(char* page) const;
  };
  using Page = std::unique_ptr<char[], FreePage>;

  // Returns a page that is already mapped, so that access to it is fast. Any thread may call it.
  static Page make_ready();

  // Tells the pool that the shell gives spares. If none is there, take() returns memory in small pages,
  // which the system maps one by one as they are used.
  void expect_spares() { expects_spares_ = true; }
  // Returns the number of spares that are missing. It is 0 for a small keyspace, which needs no more memory
  // than it uses, and grows with the number of taken pages, as large keyspaces grow fast.
  size_t wanted() const;
  void give(Page page) { spares_.push_back(std::move(page)); }

  Page take();

 private:
  std::vector<Page> spares_;
  size_t taken_ = 0;
  bool expects_spares_ = false;
};

}  // namespace holdfast
