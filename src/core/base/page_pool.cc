#include "core/base/page_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <utility>

namespace holdfast {

namespace {

constexpr std::align_val_t kAlign{PagePool::kPageBytes};

PagePool::Page new_page(int advice) {
  auto* page = static_cast<char*>(::operator new[](PagePool::kPageBytes, kAlign));
  madvise(page, PagePool::kPageBytes, advice);  // if it fails, small pages suffice
  return PagePool::Page(page);
}

}  // namespace

void PagePool::FreePage::operator()(char* page) const { ::operator delete[](page, kAlign); }

// With huge pages, a look-up in a large keyspace causes far fewer TLB misses.
PagePool::Page PagePool::make_ready() {
  constexpr size_t kSmallPageBytes = 4096;
  Page page = new_page(MADV_HUGEPAGE);
  volatile char* bytes = page.get();  // so that the compiler keeps the writes below
  for (size_t at = 0; at < kPageBytes; at += kSmallPageBytes) bytes[at] = 0;
  return page;
}

size_t PagePool::wanted() const {
  constexpr size_t kTakenForOne = 32;
  if (taken_ < kSmallPages) return 0;
  const size_t spares = std::clamp(taken_ / kTakenForOne, kFewestSpares, kMostSpares);
  return spares - std::min(spares, spares_.size());
}

PagePool::Page PagePool::take() {
  ++taken_;
  if (spares_.empty()) return new_page(expects_spares_ ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
  Page page = std::move(spares_.back());
  spares_.pop_back();
  return page;
}

}  // namespace holdfast
