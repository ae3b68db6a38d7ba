// The engine's record of each connection, and the table of all connections. Owns the output buffers; has no
// socket.
#pragma once

#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>

#include <cassert>
#include <cstring>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/buffer.h"
#include "core/base/deferred_free.h"
#include "core/base/types.h"
#include "core/state/closed_conns.h"
#include "core/state/ticket.h"

namespace holdfast {

struct WaitingRequest;
struct Command;
struct AclUser;

// Estimated bytes that a name takes as an entry of a tree.
inline uint64_t bytes_of_name(std::string_view name) { return name.size() + 64; }

// Names one hold of a key; the key may have several holds.
struct HoldName {
  DbIndex db = 0;
  std::string key;
  std::string owner;
  auto operator<=>(const HoldName&) const = default;
};

// A list of requests in one block of memory, as there may be millions of them. For each request it stores
// the number of arguments, then the length and the bytes of each argument.
class QueuedRequests {
 public:
  // The bytes that add() would append.
  static size_t bytes_of(std::span<const std::string_view> argv) {
    size_t bytes = sizeof(size_t);
    for (const std::string_view arg : argv) bytes += sizeof(size_t) + arg.size();
    return bytes;
  }
  void add(std::span<const std::string_view> argv) {
    add_number(argv.size());
    for (const std::string_view arg : argv) {
      add_number(arg.size());
      bytes_.append(arg);
    }
    ++count_;
  }
  void clear() {
    bytes_.clear();
    count_ = 0;
  }
  size_t count() const { return count_; }
  size_t bytes() const { return bytes_.size(); }
  Buffer& memory() { return bytes_; }

  // Calls f(argv) for each request, in order. The views are valid until this list changes.
  template <class F>
  void for_each(F f) const {
    std::string_view rest = bytes_.view();
    std::vector<std::string_view> argv;
    while (!rest.empty()) {
      read(rest, argv);
      f(std::span<const std::string_view>(argv));
    }
  }

  // Removes the first request and calls f(argv) for it. f may add requests after its last use of its views.
  // If it returns true, the request stays the first one.
  template <class F>
  void take_first(F f) {
    std::string_view rest = bytes_.view();
    std::vector<std::string_view> argv;
    read(rest, argv);
    const size_t used = bytes_.size() - rest.size();
    --count_;
    if (f(std::span<const std::string_view>(argv))) {
      ++count_;
    } else {
      bytes_.consume(used);
    }
  }

 private:
  void add_number(size_t n) { bytes_.append({reinterpret_cast<const char*>(&n), sizeof n}); }
  static void read(std::string_view& rest, std::vector<std::string_view>& argv) {
    argv.resize(take_number(rest));
    for (std::string_view& arg : argv) {
      const size_t size = take_number(rest);
      arg = rest.substr(0, size);
      rest.remove_prefix(size);
    }
  }
  static size_t take_number(std::string_view& from) {
    size_t n = 0;
    std::memcpy(&n, from.data(), sizeof n);
    from.remove_prefix(sizeof n);
    return n;
  }

  Buffer bytes_;
  size_t count_ = 0;
};

// What the chunks of a request that have run leave to the next one. Its destructor must not take long.
struct ChunkState {
  ChunkState() = default;
  ChunkState(const ChunkState&) = delete;
  ChunkState& operator=(const ChunkState&) = delete;
  virtual ~ChunkState() = default;
};

// Commands between MULTI and EXEC.
struct Transaction {
  QueuedRequests requests;
  bool has_script = false;
  bool writes = false;  // a request of it may write
  bool grows = false;   // a request of it may allocate memory
  bool broken = false;  // a request was rejected when it was queued: EXEC rejects the transaction
};

// A key that a connection watches for EXEC.
struct WatchedKey {
  DbIndex db = 0;
  std::string key;
  auto operator<=>(const WatchedKey&) const = default;
};

// The settings of a connection with CLIENT TRACKING on.
struct ClientTracking {
  bool bcast = false;
  bool optin = false;
  bool optout = false;
  bool noloop = false;
  bool caching = false;               // CLIENT CACHING applies to the next command
  bool redirect_broken = false;       // the connection that gets the invalidations disconnected
  uint64_t redirect = 0;              // serial of the connection that gets the invalidations; 0: this one
  std::vector<std::string> prefixes;  // BCAST: prefixes of the keys that are tracked
};

enum class ReplyMode : uint8_t { kOn, kOff, kSkipNext, kSkip };  // CLIENT REPLY; kSkip: the present reply

struct Conn {
  ConnId id;
  DbIndex db = 0;
  int protocol = 2;
  bool dirty = false;  // is in Effects::dirty
  bool closing = false;
  bool leaving = false;  // disconnected; its cleanup continues: see disconnect.h
  bool checked = true;   // its user's rights are limited, or it must still authenticate: see acl.h
  bool authenticated = false;
  bool wrote = false;                     // ran a command that writes, so it may be the client of a hold
  bool running = false;                   // one of its requests runs now: pushes go behind the reply
  WaitingRequest* blocked_on = nullptr;   // the request that blocks the connection, if any
  std::list<WaitingRequest*> waiters;     // all its waiting requests, ASYNC ones too, in FIFO order
  std::unique_ptr<TicketClient> tickets;  // null: it has sent no ticketed request and no LOCKS HEARTBEAT
  absl::btree_set<HoldName> session_holds;
  uint32_t session = 0;  // number of sessions that RESET has begun
  std::unique_ptr<Transaction> transaction;
  absl::btree_set<WatchedKey> watched;
  bool watch_broken = false;  // a watched key has changed
  absl::btree_set<std::string> channels;
  absl::btree_set<std::string> patterns;
  absl::btree_set<std::string> shard_channels;
  std::unique_ptr<ClientTracking> tracking;
  QueuedRequests postponed;                 // a request that runs when CLIENT PAUSE is over: see pause.h
  QueuedRequests chunks;                    // the rest of a chunked request: see chunked_requests.h
  std::unique_ptr<ChunkState> chunk_state;  // of that request, if it needs one
  bool chunk_repeats = false;               // the chunk that runs will run again
  bool chunk_waits = false;                 // the next chunk writes, so it runs when CLIENT PAUSE is over
  bool in_script = false;  // its script, or transaction with one, is suspended: a resumable request
  bool in_exec = false;    // its transaction runs
  bool remote = false;     // a hook has taken its request: see remote_keys.h
  bool monitor = false;
  bool no_evict = false;
  bool no_touch = false;
  ReplyMode reply_mode = ReplyMode::kOn;
  Buffer out;
  Buffer later;  // pushes that came while a request ran; sent behind its reply

  const AclUser* user = nullptr;  // set before the first request
  std::string name;
  std::string lib_name;
  std::string lib_version;
  std::string peer;
  std::string local;
  TimeMs opened;
  TimeMs last_active;
  const Command* last_command = nullptr;
  size_t unparsed_bytes = 0;
  size_t in_flight_bytes = 0;  // replies that the socket has not taken
  uint64_t name_bytes = 0;     // bytes of the names that it watches and has subscribed to
  uint64_t wait_bytes = 0;     // bytes of its waiting requests

  size_t subscriptions() const { return channels.size() + patterns.size() + shard_channels.size(); }
};

class ConnTable {
 public:
  // Returns null if the connection is closed.
  Conn* find(ConnId id) const {
    Conn* c = id.slot < slots_.size() ? slots_[id.slot].get() : nullptr;
    return c != nullptr && c->id == id ? c : nullptr;
  }
  Conn& at(ConnId id) const {
    Conn* c = find(id);
    assert(c != nullptr);
    return *c;
  }
  // Returns null also if the connection is being cleaned up after a disconnect: no command may name it
  // then.
  Conn* find_serial(uint64_t serial) const {
    const auto it = by_serial_.find(serial);
    if (it == by_serial_.end() || slots_[it->second]->leaving) return nullptr;
    return slots_[it->second].get();
  }

  // Returns the serial of the youngest connection that has these low 24 bits of the serial; 0: none has.
  uint64_t serial_of_bits(uint64_t bits) const {
    constexpr uint64_t kMask = (1U << 24U) - 1;
    const uint64_t back = (last_serial_ - bits) & kMask;
    return back >= last_serial_ ? 0 : last_serial_ - back;
  }
  const ClosedConns& closed() const { return closed_; }

  Conn& open() {
    if (free_slots_.empty()) {
      free_slots_.push_back(static_cast<uint32_t>(slots_.size()));
      slots_.emplace_back();
    }
    const uint32_t slot = free_slots_.back();
    free_slots_.pop_back();
    slots_[slot] = std::make_unique<Conn>();
    slots_[slot]->id = {++last_serial_, slot};
    by_serial_.emplace(last_serial_, slot);
    return *slots_[slot];
  }
  void close(ConnId id) {
    Conn& c = at(id);
    if (c.wrote) closed_.add({id.serial, c.opened, std::move(c.peer), std::move(c.name)});
    by_serial_.erase(id.serial);
    slots_[id.slot].reset();
    free_slots_.push_back(id.slot);
  }

  size_t size() const { return by_serial_.size(); }
  uint64_t opened() const { return last_serial_; }
  // The order is arbitrary, so it must not be visible to clients.
  template <class F>
  void for_each(F f) const {
    for (const auto& slot : slots_) {
      if (slot != nullptr) f(*slot);
    }
  }

 private:
  std::vector<std::unique_ptr<Conn>> slots_;  // unique_ptr: a Conn's address does not change
  std::vector<uint32_t> free_slots_;
  absl::flat_hash_map<uint64_t, uint32_t> by_serial_;
  uint64_t last_serial_ = 0;
  ClosedConns closed_;
};

// Frees the requests of a transaction that is done or discarded. `transaction` may be null. Its requests
// may take megabytes, so their memory is freed step by step.
inline void end_transaction(DeferredFree& deferred_free, std::unique_ptr<Transaction> transaction) {
  if (transaction != nullptr) deferred_free.take(transaction->requests.memory());
}

}  // namespace holdfast
