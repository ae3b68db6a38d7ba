// The steps of a save.
#include "io/disk/save.h"

#include <utility>

#include "io/os/clock.h"

namespace holdfast {

namespace {

constexpr int64_t kStepUs = 200;  // for the walk over the keys, in one loop iteration

int compression_level(const Options& options) {
  return options.compress == "yes" ? static_cast<int>(options.compress_level) : 0;
}

}  // namespace

Save::Save(DataFolder& folder, const Now& now, uint64_t journal, std::function<void()> ended)
    : folder_(folder),
      began_ms_(now.wall_us / 1000),
      journal_(journal),
      generation_(folder.journals() ? folder.journal().generation() : 0),
      reopened_(folder.reopened()),
      frames_(folder.frames()),
      snapshot_(std::make_unique<Snapshot>(folder.engine().state(), now, journal, folder.journals())),
      writer_(folder.files(), folder.loop(), compression_level(folder.options())),
      ended_(std::move(ended)) {
  snapshot_->bytes().reserve(SnapshotWriter::kRoomBytes);  // else it copies itself as it grows
  idle_.emplace(folder.loop(), [this] { step(); });
  idle_->start();
}

// Pauses while the disk is slower. Walks a failed snapshot to its end, too, because the next one can begin
// only after the walk has passed every key.
void Save::step() {
  const int64_t until_us = read_stopwatch_us() + kStepUs;
  while (!walked_ && read_stopwatch_us() < until_us && !writer_.is_full()) {
    walked_ = snapshot_->step();
    if (!writer_.failure().empty()) {
      snapshot_->bytes().clear();
    } else if (snapshot_->bytes().size() >= SnapshotWriter::kChunkBytes || walked_) {
      writer_.add(snapshot_->bytes(), [this] {
        if (snapshot_ != nullptr && !walked_) idle_->start();
      });
    }
  }
  if (!walked_) {
    if (writer_.is_full()) idle_->stop();
    return;
  }
  idle_->stop();
  writer_.finish([this] {
    if (snapshot_ == nullptr) return;
    const std::function<void()> ended = ended_;  // it may destroy this object
    ended();
  });
}

void Save::run_to_end(const std::function<void()>& working) {
  idle_->stop();
  while (!snapshot_->step()) {
    if (snapshot_->bytes().size() < SnapshotWriter::kChunkBytes) continue;
    writer_.add_now(snapshot_->bytes());
    working();
  }
  writer_.add_now(snapshot_->bytes());
  writer_.finish_now();
}

void Save::abandon(const std::string& why) {
  idle_->stop();
  writer_.abandon(why);
  while (!walked_) {
    walked_ = snapshot_->step();
    snapshot_->bytes().clear();
  }
}

void Save::stop() {
  idle_.reset();
  snapshot_.reset();
}

SaveOutcome Save::outcome() const {
  SaveOutcome outcome;
  outcome.failure = writer_.failure();
  if (outcome.failure.empty() && !is_in_folder()) outcome.failure = "the data folder was replaced";
  outcome.began_ms = began_ms_;
  outcome.took_ms = folder_.now().wall_us / 1000 - began_ms_;
  outcome.bytes = writer_.written_bytes();
  outcome.frames = frames_;
  return outcome;
}

void Save::drop_earlier_journals() {
  folder_.journal().forget_before(generation_);
  folder_.remove_journals_below(journal_);
}

}  // namespace holdfast
