// Pages of memory for arenas. To touch a fresh huge page takes milliseconds on some machines (the system
// clears it, and a host may have to find it first), so a shell that must not stand still makes spare ones
// on another thread and gives them here. Not to be shared by threads, but for make_ready().
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
  struct FreePage {
    void operator()(char* page) const;
  };
  using Page = std::unique_ptr<char[], FreePage>;

  // A page that takes no more time to touch. For any thread.
  static Page make_ready();

  // From now on somebody gives spares; where one is missing, a page is touched bit by bit as it is used.
  void expect_spares() { expects_spares_ = true; }
  // How many spares there should be more than there are. None before the first page has been taken, and
  // more the more have been, as large keyspaces grow fast.
  size_t wanted() const;
  void give(Page page) { spares_.push_back(std::move(page)); }

  Page take();

 private:
  std::vector<Page> spares_;
  size_t taken_ = 0;
  bool expects_spares_ = false;
};

}  // namespace holdfast
