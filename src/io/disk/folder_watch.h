// A data folder that is removed, moved or replaced while the server runs: saves all data again in the
// folder that is now at its path. Until then the server grants nothing, and a crash makes the next start
// wait for the holds that it may have lost.
#pragma once

#include <string>

#include "io/disk/data_folder.h"
#include "io/disk/saves.h"

namespace holdfast {

class FolderWatch {
 public:
  FolderWatch(DataFolder& folder, Saves& saves) : folder_(folder), saves_(saves) {}

  // Detects a replaced folder, because writes to open files still succeed in a folder that no later start
  // finds. Takes the next step in it. Call it once a second, and at a stop.
  void check();
  // A save has ended in the present folder.
  void end_save();

  // Whether the present folder may be another server's, so that nothing may be written to it.
  bool is_unclaimed() const { return step_ == Step::kClaim; }
  bool awaits_save() const { return step_ == Step::kSave; }
  bool is_rebuilding() const { return step_ != Step::kNone; }

 private:
  // The next step in a replaced folder: claim it, then save everything there.
  enum class Step { kNone, kClaim, kSave };

  bool enter_new_folder();
  Result<Done> claim();
  void save();
  std::string unsaved() const;
  void end();

  DataFolder& folder_;
  Saves& saves_;
  Step step_ = Step::kNone;
};

}  // namespace holdfast
