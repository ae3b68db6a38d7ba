// The engine and the model side by side: every step goes to both, and the output of every connection is
// compared. It does the shell's part of engine.h's contract, and detects the engine's breaches of it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/engine.h"
#include "model.h"
#include "step.h"
#include "watcher.h"

namespace holdfast::simulation {

inline constexpr int kProbe = -1;  // a connection that only reads
inline constexpr int kNoConn = -2;

class World {
 public:
  explicit World(const Profile& profile);

  // Plays a step if it makes sense now (a shortened trace has steps that do not). Returns the fault; empty
  // if there is none.
  std::string play(const Step& step);

  const Model& model() const { return model_; }
  const Profile& profile() const { return profile_; }
  Now now() const { return {TimeMs{now_ms_}, kStartWallUs + (now_ms_ - kStartMs) * 1000}; }
  bool is_open(int conn) const { return conns_.contains(conn); }
  Serial serial(int conn) const { return conns_.at(conn).serial; }
  bool may_send(int conn) const { return is_open(conn) && !engine_.blocked(conns_.at(conn)); }

  // Writes all events as a transcript.
  void record(std::string* transcript) {
    transcript_ = transcript;
    record_line("connect " + conn_name(kProbe));  // so that a second run has the same ids
  }

 private:
  bool step_ticks_first(const Step& step) const;
  std::string act(const Step& step);
  std::string open(int conn);
  std::string command(int conn, const Args& args);
  Args resolved(const Args& args) const;
  std::string tick();
  std::string compare();
  std::string compare_conn(int conn);
  std::string check_effects(const std::map<int, bool>& blocked_before);
  std::string check_deadline() const;
  std::string look(const Step& step);
  std::string replay();
  void record_line(const std::string& what);
  void record_reply(int conn, std::string_view reply);

  Profile profile_;
  std::string drawn_;  // the random bytes of the present request
  uint8_t next_random_ = 0;
  Engine engine_;
  Engine twin_;  // sees only the journal of engine_
  Model model_;
  Watcher watcher_;
  Effects fx_;
  std::map<int, ConnId> conns_;
  int64_t now_ms_ = kStartMs;
  int asked_ = kNoConn;  // the connection whose request runs
  int64_t ticked_ms_ = kStartMs;
  int64_t recorded_ms_ = -1;
  std::string seen_;  // the probe's output
  std::string* transcript_ = nullptr;
};

}  // namespace holdfast::simulation
