// The engine: it takes requests and produces replies and effects. Deterministic: it has no clock, socket,
// file, thread or random source of its own; the same calls give the same bytes. Not thread safe: one event
// loop drives it.
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
class RequestBatch;
class Tokens;
struct EngineParts;
struct EngineState;

class Engine {
 public:
  explicit Engine(Config config);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Adds a connection and returns its id. `peer` and `local` are addresses as CLIENT LIST shows them
  // ("127.0.0.1:4711", "/run/x.sock:0"). The engine has no limit of connections: the shell rejects those
  // beyond it.
  ConnId open(std::string_view peer, std::string_view local, Now now);

  // Runs one request. `argv` has at least one element; its views need to live only during the call. Appends
  // the replies to output(conn), and adds to `fx` without clearing it. Everything due by `now` happens
  // before the request. Must not be called for a connection that is blocked() or closing(). Returns true if
  // the connection is neither after the call, so that its next request may follow.
  bool apply(ConnId conn, std::span<const std::string_view> argv, Now now, Effects& fx);

  // Prefetches the memory that the requests will probably need when the connection runs them next. Has no
  // other effect, so that it need not be called.
  void prefetch(ConnId conn, const RequestBatch& batch) const;

  // Replies to a malformed frame with "-ERR Protocol error: <why>", and asks the shell to close the
  // connection.
  void reject(ConnId conn, std::string_view why, Effects& fx);

  // Removes a connection that either side has closed: it leaves all queues, and its SESSION holds end.
  void drop(ConnId conn, Now now, Effects& fx);

  // Does all work that is due: expiry, timeouts of waits, ends of sessions. Removes at most `budget`
  // expired entries without waiters, so that very many of them never block the loop. next_deadline()
  // returns the time of the next call.
  void tick(Now now, Effects& fx, size_t budget = 256);

  // The time at which tick() next has work; in the past if it has work now. Returns nullopt if there is no
  // work before the next request.
  std::optional<TimeMs> next_deadline() const;

  // The unsent replies. The engine appends to the buffer; the shell removes the bytes that it has sent. The
  // engine owns the buffer. It lives as long as the connection, and its address does not change.
  Buffer& output(ConnId conn);

  // Empties a buffer whose memory is not needed any more. The engine frees large memory in small steps.
  void free_later(Buffer& buffer);
  // Counts the memory of a buffer of the shell as used memory from now on. The engine must outlive the
  // buffer.
  void count_memory(Buffer& buffer);

  // Whether the connection was not dropped.
  bool is_open(ConnId conn) const;
  // Whether the connection waits (for a lock, for the end of its own long request or of CLIENT PAUSE). Its
  // later requests must wait in its input.
  bool blocked(ConnId conn) const;
  // Whether the connection waits for something that the server sends on its own: a lock, messages of its
  // subscriptions, or the lines of MONITOR. It is not idle, however long it sends nothing.
  bool awaits_push(ConnId conn) const;
  // Whether the connection has a chunked request that continues in later loop iterations without waiting
  // for another client.
  bool runs_deferred(ConnId conn) const;
  // Whether the shell must close the connection (QUIT, CLIENT KILL, a malformed frame). It must not pass
  // further requests.
  bool closing(ConnId conn) const;

  // Whether the connection still has to authenticate: see RequestParser::set_preauth().
  bool is_preauth(ConnId conn) const;
  // Whether connections need no authentication: "default" needs no password.
  bool allows_unauthenticated() const;

  // The largest number of unsent reply bytes of a connection. It depends on its kind: not yet
  // authenticated, subscriber, or normal. Beyond it output() has overflowed: it is incomplete, and the
  // shell must not send it.
  size_t output_limit(ConnId conn) const;
  // The largest number of unparsed input bytes of a connection.
  size_t input_limit(ConnId conn) const;
  // For a connection that has not yet authenticated: the largest request, and the largest read, in bytes.
  static constexpr size_t kPreauthInputBytes = size_t{256} << 10U;

  // Records the buffered, unparsed input bytes of a connection. CLIENT LIST shows them, and they count as
  // used memory.
  void record_input(ConnId conn, size_t unparsed_bytes);
  // Records the reply bytes that the socket has not taken and that are not in output() any more, for CLIENT
  // LIST.
  void record_in_flight(ConnId conn, size_t bytes);
  // Whether memory is nearly full, and the connection takes more than its share: the shell must close it.
  // See memory_share.h.
  bool exceeds_share(ConnId conn) const;
  // Once a second: ends waits that exceed the share of their connection while memory is nearly full.
  // Returns the connections that the shell must close for the same reason.
  std::vector<ConnId> end_excess(Now now, Effects& fx);
  // For INFO: record bytes read and written (added to the totals since the start), and rejected
  // connections.
  void record_traffic(uint64_t read_bytes, uint64_t written_bytes);
  void record_rejected_connection();

  const Config& config() const;

  // For a proxy: Config::remote.

  // Runs the request that the hook took from a connection, on a copy of its key. `argv` is that of the
  // request. The connection stays blocked, and has no reply yet.
  RemoteOutcome run_remote(ConnId conn, std::span<const std::string_view> argv, const RemoteKey& before,
                           Now now, Effects& fx);
  // Ends the transaction whose EXEC the hook took, without running it.
  void discard_remote(ConnId conn);
  // Ends the request that the hook took: `reply` are its bytes in the protocol of the connection.
  void answer_remote(ConnId conn, std::string_view reply, Now now, Effects& fx);
  // The protocol of the connection, 2 or 3.
  int protocol(ConnId conn) const;

  // For persistence:

  // Records all changes from now on, in the format of journal.h.
  void keep_journal();
  // The records since the last clear; the shell clears them after it has copied them. While a resumable
  // request is deferred: only those recorded before it began, as its changes are atomic.
  std::string_view journal_records();
  // Whether changes from before a deferred request have no record yet: replies that rely on them must wait.
  bool withholds_records() const;
  // Whether the records contain a change that a client relies on, not only releases.
  bool recorded_grants() const;
  void clear_journal_records();
  // Starts a new journal file: the following records must be readable without the former ones.
  void begin_journal_file();
  // Tells replay() that the following records belong to another file.
  void begin_replayed_file();
  // Replays records, before the first request. Returns an empty string, or the error.
  std::string replay(std::string_view records, Now now);
  // Ends loading, after all files are read. Sessions of the former process end; the next tick() handles all
  // that is due.
  void finish_loading(Now now);
  // What the server may do, given the state of the disk. The shell changes it between requests.
  Availability& availability();
  // The pool from which keyspaces allocate. A shell that must not block adds spare pages to it.
  PagePool& pages();
  // Whether a snapshot may begin: no resumable request is deferred.
  bool at_rest() const;
  // For a stop: ends a deferred request, as SCRIPT KILL does, unless its script has written. Then the state
  // has a part of the script's changes, and must not be saved.
  void end_unwritten_request();
  uint64_t largest_token() const;
  // The tokens issued so far.
  const Tokens& tokens() const;
  // The latest deadline of all holds granted since the start, on the engine's clock.
  TimeMs latest_deadline() const;
  // For Snapshot and Restore, and for the functions of the core. The shell asks those of engine/:
  // figures.h, lock_events.h, metrics.h, readiness.h and visitors.h.
  EngineState& state() { return *s_; }
  const EngineState& state() const { return *s_; }

  // Asserts every invariant of every structure. Slow: for tests and the simulation.
  void check_invariants() const;

 private:
  void resume_request(Now now, Effects& fx);

  std::unique_ptr<EngineParts> parts_;
  EngineState* s_;  // of parts_
};

}  // namespace holdfast
