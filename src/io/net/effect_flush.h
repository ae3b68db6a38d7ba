// Handles the effects of the engine at the end of a loop iteration: sends replies, closes connections,
// wakes clients. Holds back the replies that wait for the disk.
#pragma once

#include "core/state/effects.h"
#include "io/net/held_replies.h"

namespace holdfast {

class Server;

class EffectFlush {
 public:
  explicit EffectFlush(Server& server) : server_(server) {}
  EffectFlush(const EffectFlush&) = delete;
  EffectFlush& operator=(const EffectFlush&) = delete;

  // The effects to be handled. The engine adds to them.
  Effects& effects() { return effects_; }
  bool any() const { return !effects_.empty(); }
  // Handles the effects, and those that they cause, as far as one iteration may go.
  void handle_all();
  // Sends the held replies whose data is as safe as the settings require.
  void release_held();
  // Sends all held replies: all data is as safe as the settings require.
  void flush_held();

 private:
  void handle();
  void finish_if_closing(ConnId id);

  Server& server_;
  Effects effects_;
  Effects handled_;  // being handled; a member to reuse its memory
  HeldReplies held_;
};

}  // namespace holdfast
