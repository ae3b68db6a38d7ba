#include "io/net/memory_upkeep.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/page_pool.h"
#include "core/engine/figures.h"
#include "io/os/handles.h"
#include "io/os/jobs.h"

namespace holdfast {

void MemoryUpkeep::start(uv_loop_t* loop) {
  loop_ = loop;
  uv_idle_init(loop, &idle_);
  idle_.data = this;
}

void MemoryUpkeep::close() { close_handle(idle_); }

// The first use of fresh memory takes time (page faults).
void MemoryUpkeep::make_spare_pages() {
  const size_t wanted = pages_.wanted();
  if (wanted == 0 || making_pages_) return;
  making_pages_ = true;
  auto pages = std::make_shared<std::vector<PagePool::Page>>();
  run_job(
      loop_,
      [pages, wanted] {
        for (size_t i = 0; i < wanted; ++i) pages->push_back(PagePool::make_ready());
      },
      [this, pages] {
        making_pages_ = false;
        for (PagePool::Page& page : *pages) pages_.give(std::move(page));
      });
}

void MemoryUpkeep::free_pages() {
  if (pages_.unneeded() == 0 || freeing_pages_) return;
  freeing_pages_ = true;
  auto pages = std::make_shared<std::vector<PagePool::Page>>(pages_.take_unneeded());
  run_job(
      loop_, [pages] { pages->clear(); }, [this] { freeing_pages_ = false; });
}

void MemoryUpkeep::sample(const Engine& engine, TimeMs now) {
  most_used_bytes_ = std::max(most_used_bytes_, used_memory_bytes(engine));
  sampled_at_ = now;
}

void MemoryUpkeep::look(uint64_t used_bytes) {
  most_used_bytes_ = std::max(most_used_bytes_, used_bytes);
  const uint64_t freed_bytes = most_used_bytes_ - used_bytes;
  const bool falls = used_bytes < std::exchange(last_used_bytes_, used_bytes);
  if (falls || releases_heap_ || freed_bytes < std::max(kLeastBytes, used_bytes / kLeastPart)) return;
  most_used_bytes_ = used_bytes;
  releases_heap_ = true;
  heap_.begin(freed_bytes);
  uv_idle_start(&idle_, on_idle);
}

void MemoryUpkeep::on_idle(uv_idle_t* idle) noexcept {
  auto* upkeep = static_cast<MemoryUpkeep*>(idle->data);
  if (!upkeep->heap_.step()) return;
  upkeep->releases_heap_ = false;
  uv_idle_stop(idle);
}

}  // namespace holdfast
