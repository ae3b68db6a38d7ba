// The server: puts the parts of the loop together. Begins and ends loop iterations, wakes the engine when
// it has work to do, and stops on a signal. Single-threaded. Reads the clock once in an iteration. Each
// part has its own data and a file of its own; connections reach them through the server.
#pragma once

#include <uv.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/codec/request_batch.h"
#include "core/engine/engine.h"
#include "io/config/options.h"
#include "io/disk/store.h"
#include "io/net/admission.h"
#include "io/net/backlog.h"
#include "io/net/client_checks.h"
#include "io/net/connections.h"
#include "io/net/effect_flush.h"
#include "io/net/iteration.h"
#include "io/net/listen.h"
#include "io/net/loop_phases.h"
#include "io/net/server_signals.h"
#include "io/net/service_reporter.h"

namespace holdfast {

class Door;

// Ends after all its handles.
struct OwnedLoop {
  OwnedLoop();
  ~OwnedLoop();
  OwnedLoop(const OwnedLoop&) = delete;
  OwnedLoop& operator=(const OwnedLoop&) = delete;
  uv_loop_t uv;
};

class Server {
 public:
  // Takes ownership of the listening sockets. The engine must outlive the server, and so must the store
  // (null: no data folder) and `tls`: see Admission.
  Server(Engine& engine, const Options& options, std::vector<ListenSocket> sockets, Store* store,
         const std::shared_ptr<const TlsContext>& tls);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Serves until SIGTERM, SIGINT or ask_to_stop(). Returns a failure of the start, or of the data folder at
  // the stop.
  Result<Done> run();
  // Adds a second way to the engine. Call it before run(); the door must outlive the server.
  void add_door(Door& door) { doors_.push_back(&door); }
  // Stops at the next loop iteration.
  void ask_to_stop() { signals_.ask_to_stop(); }
  LoopMeter& meter() { return phases_.meter(); }
  BusyPollFacts busy_poll_facts() const { return phases_.wait().facts(); }

  // For connections and parts, inside a callback of the loop:

  uv_loop_t* loop() { return &loop_.uv; }
  Engine& engine() { return engine_; }
  Effects& effects() { return flush_.effects(); }
  const Options& options() const { return options_; }
  Store* store() const { return store_; }
  const std::vector<Door*>& doors() const { return doors_; }
  const Connections& connections() const { return connections_; }
  // Returns the time of this iteration. The first call of an iteration reads the clock and runs the
  // engine's due work.
  const Now& now() {
    if (!iteration_.is_open()) begin_iteration();
    return iteration_.now();
  }
  // The same without beginning an iteration, at its end.
  const Now& iteration_time() const { return iteration_.now(); }
  // Returns scratch space that the caller may use until its callback returns.
  uv_buf_t read_buffer() { return uv_buf_init(read_buffer_.get(), kReadBytes); }
  // The same for decrypted bytes. The caller leaves it empty.
  Buffer& plaintext() { return plaintext_; }
  // Scratch space for the requests that a connection is about to run.
  RequestBatch& batch() { return batch_; }
  // A connection begins to serve the client.
  void begin_client(ConnId id, Connection& connection);
  // Removes a closed connection, and drops its client in the engine.
  void forget(ConnId id);
  // The same, but its socket continues to send the last replies, and counts as a client until end_linger().
  void linger(Connection& connection);
  void end_linger(Connection& connection) { connections_.end_linger(connection); }
  // Frees the memory of a large buffer that is no longer needed. The engine empties the buffer before now()
  // begins an iteration, so bytes that the iteration adds to the buffer stay.
  void free_later(Buffer& buffer) {
    engine_.free_later(buffer);
    now();
  }
  // Adds a client with complete requests that has used its share of this iteration.
  void add_backlog(ConnId id) { backlog_.add(id); }
  uint64_t share_ns() const { return backlog_.share_ns(); }
  // See LoopWait.
  uint64_t reads() const { return phases_.wait().reads(); }
  void note_read(uint64_t replied_at) { phases_.wait().note_read(replied_at); }
  // Ends an iteration early that has done much work, so that no client waits long for its reply. This may
  // close any connection.
  void did_read(size_t bytes) {
    if (iteration_.did_read(bytes)) end_iteration();
  }
  // Adds work that cost as much time as requests of so many bytes. Call it before did_read().
  void did_work(size_t bytes) { iteration_.did_work(bytes); }
  void did_write(size_t bytes) { iteration_.did_write(bytes); }

  // For LoopPhases:

  void end_open_iteration() {
    if (iteration_.is_open()) end_iteration();
  }
  // An iteration without input.
  void run_due_work();

 private:
  void begin_iteration();
  void end_iteration();
  std::optional<TimeMs> next_work() const;
  Result<Done> start();
  Store::Hooks store_hooks();
  void begin_to_serve();
  std::string ready_text() const;
  std::string service_status() const;
  void reload();
  void stop(const char* signal_name);

  Engine& engine_;
  const Options& options_;
  Store* store_;
  std::vector<Door*> doors_;
  OwnedLoop loop_;
  LoopPhases phases_;
  ServerSignals signals_;
  Admission admission_;
  Connections connections_;
  Backlog backlog_;
  Iteration iteration_;
  EffectFlush flush_{*this};
  ClientChecks checks_;
  ServiceReporter service_;
  std::unique_ptr<char[]> read_buffer_;
  Buffer plaintext_;
  RequestBatch batch_;
  std::string failure_;  // of the start, or of the data folder at the stop
  bool stopping_ = false;
};

}  // namespace holdfast
