// The ring of lock events: its memory, and what is read from it.
#include "core/state/history.h"

#include <array>
#include <utility>

namespace holdfast {

std::string_view event_name(LockEvent event) {
  static constexpr std::array<std::string_view, 12> kNames = {
      "granted",     "released", "expired",  "lost",         "broken",    "deleted",
      "overwritten", "timeout",  "deadlock", "disconnected", "unblocked", "revoke"};
  return kNames[static_cast<size_t>(event)];
}

namespace {

constexpr size_t kMostNoteBytes = 256;

}  // namespace

History::History(size_t limit) : limit_(limit) {}
History::~History() { free_slots(); }

char* History::outside_text(const Slot& slot) {
  char* text = nullptr;
  std::memcpy(&text, slot.text, sizeof text);
  return text;
}

// Only of texts that are not in a copied entry.
size_t History::text_bytes(const Slot& slot) {
  return size_t{slot.kept_key} + slot.owner_bytes + slot.note_bytes;
}

void History::free_text(Slot& slot) {
  text_bytes_ -= text_bytes(slot);
  delete[] outside_text(slot);
  slot.form = Form::kTexts;
}

void History::free_slots() {
  for (const auto& chunk : chunks_) {
    for (Slot& slot : chunk->slots) {
      if (slot.form == Form::kOutside) free_text(slot);
    }
  }
  chunks_.clear();
  next_ = end_ = nullptr;
}

void History::clear() {
  free_slots();
  first_serial_ = last_serial_;
}

// The next slot is the first one of a chunk: of a new chunk while the ring fills, else of one in use.
void History::open_chunk() {
  const size_t i = (last_serial_ - first_serial_) % limit_;
  const size_t chunk = i / kChunkSlots;
  if (chunk == chunks_.size()) chunks_.push_back(std::make_unique<Chunk>());
  Slot* const slots = chunks_[chunk]->slots;
  next_ = slots + i % kChunkSlots;
  end_ = slots + std::min(kChunkSlots, limit_ - chunk * kChunkSlots);
}

void History::set_limit(size_t limit) {
  if (limit == limit_) return;
  History bigger(limit);
  bigger.first_serial_ = bigger.last_serial_ = last_serial_ - std::min(kept(), limit);
  while (bigger.last_serial_ < last_serial_) {
    const uint64_t serial = bigger.last_serial_ + 1;
    Slot& from = slot_of(serial);
    bigger.take() = from;
    from.form = Form::kTexts;  // the copy owns the text now
  }
  free_slots();
  limit_ = limit;
  first_serial_ = bigger.first_serial_;
  chunks_.swap(bigger.chunks_);
  next_ = std::exchange(bigger.next_, nullptr);
  end_ = std::exchange(bigger.end_, nullptr);
  text_bytes_ = 0;
  for (uint64_t serial = oldest(); serial <= newest(); ++serial) {
    const Slot& slot = slot_of(serial);
    if (slot.form == Form::kOutside) text_bytes_ += text_bytes(slot);
  }
}

LockEventFacts& History::add(std::string_view key, std::string_view owner, std::string_view note) {
  if (owner.size() > kMostOwnerBytes) return unwanted_;  // a value, not a lock
  const std::string_view kept_key = key.substr(0, kMostKeyBytes);
  note = note.substr(0, kMostNoteBytes);
  const size_t bytes = kept_key.size() + owner.size() + note.size();
  Slot& slot = take();
  slot.key_bytes = static_cast<uint32_t>(key.size());
  slot.kept_key = static_cast<uint16_t>(kept_key.size());
  slot.owner_bytes = static_cast<uint16_t>(owner.size());
  slot.note_bytes = static_cast<uint16_t>(note.size());
  slot.form = Form::kTexts;
  char* to = slot.text;
  if (bytes > kInlineBytes) {
    to = new char[bytes];
    text_bytes_ += bytes;
    std::memcpy(slot.text, &to, sizeof to);
    slot.form = Form::kOutside;
  }
  for (const std::string_view text : {kept_key, owner, note}) {
    if (!text.empty()) std::memcpy(to, text.data(), text.size());
    to += text.size();
  }
  return slot.facts;
}

void History::add_hold_slowly(const Entry& e, int64_t at_us, DurationMs lasted, uint64_t conn,
                              LockEvent event, DbIndex db) {
  add(key_of(e), value_of(e), {}) = {at_us, token_of(e), lasted, conn, event, db};
}

LockEventView History::at(uint64_t serial) const {
  assert(serial >= oldest() && serial <= newest());
  const Slot& slot = slot_of(serial);
  LockEventView view;
  static_cast<LockEventFacts&>(view) = slot.facts;
  view.serial = serial;
  if (slot.form == Form::kEntry) {
    Entry e;
    std::memcpy(&e, slot.text, sizeof e);
    view.token = token_of(e);
    view.key = {slot.text + kEntryHeaderBytes, e.key_size};
    view.key_bytes = view.key.size();
    view.owner = {view.key.data() + view.key.size(), inline_value_size(e)};
    return view;
  }
  const char* const text = slot.form == Form::kOutside ? outside_text(slot) : slot.text;
  view.key = {text, slot.kept_key};
  view.key_bytes = slot.key_bytes;
  view.owner = {text + slot.kept_key, slot.owner_bytes};
  view.note = {text + slot.kept_key + slot.owner_bytes, slot.note_bytes};
  return view;
}

void History::check_invariants() const {
  assert(kept() <= limit_);
  uint64_t text_bytes = 0;
  for (const auto& chunk : chunks_) {
    for (const Slot& slot : chunk->slots) {
      if (slot.form == Form::kOutside) text_bytes += History::text_bytes(slot);
    }
  }
  assert(text_bytes == text_bytes_);
}

}  // namespace holdfast
