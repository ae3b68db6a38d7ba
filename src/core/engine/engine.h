// The engine: requests in, replies and effects out. Deterministic: it has no clock, socket, file, thread or
// random source of its own; the same calls give the same bytes. Not thread safe: one loop drives it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/buffer.h"
#include "core/base/config.h"
#include "core/base/types.h"
#include "core/state/availability.h"
#include "core/state/effects.h"

namespace holdfast {

class PagePool;
class Tokens;
struct EngineState;

class Engine {
 public:
  explicit Engine(Config config);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // A new connection. `peer` and `local` are addresses as CLIENT LIST shows them ("127.0.0.1:4711",
  // "/run/x.sock:0"). The engine does not count connections: the shell refuses those beyond the limit.
  ConnId open(std::string_view peer, std::string_view local, Now now);

  // Runs one request. `argv` has at least one element; its views need to live only during the call. The
  // replies are appended to output(conn), and `fx` is added to, not cleared. Everything due by `now` has
  // happened before the request. Not to be called for a connection that is blocked() or closing(); returns
  // whether it is neither now, so that its next request may follow.
  bool apply(ConnId conn, std::span<const std::string_view> argv, Now now, Effects& fx);

  // Answers a broken frame: "-ERR Protocol error: <why>", after which the connection is to close.
  void reject(ConnId conn, std::string_view why, Effects& fx);

  // The connection has gone, whoever ended it: it leaves all queues and its SESSION holds end.
  void drop(ConnId conn, Now now, Effects& fx);

  // Does what is due: expiry, ends of waits and sessions. Removes at most `budget` expired entries that
  // nobody waits for, so that a storm of them never holds the loop; next_deadline() tells when to come
  // again.
  void tick(Now now, Effects& fx, size_t budget = 500);

  // When tick() has next something to do: in the past where it has already; nullopt: not before a request.
  std::optional<TimeMs> next_deadline() const;

  // The unsent replies. The shell consumes what it has written; the engine appends. The buffer lives as
  // long as the connection, and its address does not change.
  Buffer& output(ConnId conn);

  // Empties a buffer whose memory is not needed any more; what is large goes back a little at a time.
  void give_back(Buffer& buffer);
  // The memory of a buffer of the shell's counts as used from now on; the engine must outlive it.
  void count_memory(Buffer& buffer);

  // Whether the connection waits (for a lock, for the end of its own long request or of CLIENT PAUSE):
  // later requests of it have to wait in its input.
  bool blocked(ConnId conn) const;
  // Whether it is its own request that goes on in later turns, with nobody to wait for.
  bool runs_deferred(ConnId conn) const;
  // Whether the connection is to be closed (QUIT, CLIENT KILL, a broken frame): no request is taken any
  // more.
  bool closing(ConnId conn) const;

  // Whether it has still to say who it is: see RequestParser::set_guest().
  bool is_guest(ConnId conn) const;
  // Whether a connection may do without: "default" needs no password.
  bool allows_unauthenticated() const;

  // The most that a connection may leave unread, by what it is: one that has still to log in, a subscriber
  // or any other. Where it has left more, output() overflowed: it is not whole, and must not be sent.
  size_t output_limit(ConnId conn) const;
  // The most input of a connection that may wait to be parsed.
  size_t input_limit(ConnId conn) const;
  // For a connection that has still to log in: the largest request of one, and what is read at once.
  static constexpr size_t kGuestInputBytes = size_t{256} << 10U;

  // Bytes of input that are buffered and not parsed: for CLIENT LIST, and they count as used memory.
  void record_input(ConnId conn, size_t unparsed_bytes);
  // For INFO: bytes read and written since the start, and connections refused.
  void record_traffic(uint64_t read_bytes, uint64_t written_bytes);
  void record_rejected_connection();

  const Config& config() const;

  // For the disk:

  // From now on what changes is recorded, in the form of journal.h.
  void keep_journal();
  // The records since they were last cleared, which is the shell's to do once it has them. While a request
  // is put off in the middle there is nothing to take: its changes are one.
  std::string_view journal_records();
  // Whether they have anything that a client relies on, not only releases.
  bool recorded_grants() const;
  void clear_journal_records();
  // The records that follow go to another file, which has to make sense without those before.
  void begin_journal_file();
  // The records that follow, for replay(), are those of another file.
  void begin_replayed_file();
  // Does records again, before the first request. Empty, or what is wrong with them.
  std::string replay(std::string_view records, Now now);
  // Everything that was kept has been read. Sessions of before end; the next tick sees to what is due.
  void finish_loading(Now now);
  // What the disk lets the server do: the shell's to change, between requests.
  Availability& availability();
  // Where keyspaces have their memory from: a shell that must not stand still gives it spare pages.
  PagePool& pages();
  // Whether a snapshot may begin: no request is put off in the middle.
  bool at_rest() const;
  uint64_t largest_token() const;
  // What has been given out.
  const Tokens& tokens() const;
  // The latest end of a hold that has been granted since the start, on the engine's clock.
  TimeMs latest_deadline() const;
  // For Snapshot and Restore alone.
  EngineState& state() { return *s_; }

  // Asserts every invariant of every structure. Slow: for tests and the simulation.
  void check_invariants() const;

 private:
  void resume_request(Now now, Effects& fx);

  std::unique_ptr<EngineState> s_;
};

}  // namespace holdfast
