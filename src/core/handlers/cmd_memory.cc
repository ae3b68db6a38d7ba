// MEMORY STATS, DOCTOR, MALLOC-STATS: show the memory use of the server.
#include <string>

#include "core/base/config.h"
#include "core/codec/reply.h"
#include "core/command/handlers.h"
#include "core/keyspace/keyspace.h"
#include "core/script/script.h"
#include "core/state/conn.h"
#include "core/state/journal.h"
#include "core/state/memory_use.h"
#include "core/state/request.h"

namespace holdfast {

namespace {

// Memory use, in bytes.
struct MemoryReport {
  uint64_t used = 0;     // as INFO's used_memory
  uint64_t dataset = 0;  // keys with their values and tables
  uint64_t clients = 0;  // connections, with their unsent output
  uint64_t keys = 0;     // the number of keys, not bytes
  HostFacts host;

  uint64_t overhead() const { return used - dataset; }
};

MemoryReport look(Request& r) {
  MemoryReport m;
  m.used = record_memory_use(r.ctx);
  for (const auto& db : r.s().dbs) {
    m.dataset += db->used_bytes();
    m.keys += db->live();
  }
  r.s().conns.for_each([&m](const Conn& c) {
    m.clients += sizeof(Conn) + c.out.capacity() + c.later.capacity() + c.unparsed_bytes;
    if (c.transaction != nullptr) m.clients += c.transaction->requests.bytes();
  });
  if (r.s().config.host_facts) m.host = r.s().config.host_facts();
  return m;
}

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }
double ratio(uint64_t part, uint64_t whole) {
  return ratio(static_cast<double>(part), static_cast<double>(whole));
}

void write(Reply& reply, std::string_view name, uint64_t value) {
  reply.bulk(name);
  reply.integer(static_cast<int64_t>(value));
}
void write(Reply& reply, std::string_view name, double value) {
  reply.bulk(name);
  reply.number(value);
}
void write_difference(Reply& reply, std::string_view name, uint64_t more, uint64_t less) {
  reply.bulk(name);
  reply.integer(static_cast<int64_t>(more) - static_cast<int64_t>(less));
}

// Writes the figures of the server itself (not of the host). The names are those of Redis.
void write_own(Request& r, const MemoryReport& m) {
  const MemoryUse& memory = r.s().memory;
  write(r.reply, "peak.allocated", memory.peak_bytes);
  write(r.reply, "total.allocated", m.used);
  write(r.reply, "startup.allocated", memory.startup_bytes);
  write(r.reply, "replication.backlog", uint64_t{0});
  write(r.reply, "clients.slaves", uint64_t{0});
  write(r.reply, "clients.normal", m.clients);
  write(r.reply, "cluster.links", uint64_t{0});
  write(r.reply, "aof.buffer", uint64_t{r.s().journal.out.capacity()});
  write(r.reply, "lua.caches", r.s().scripts.memory_bytes());
  write(r.reply, "functions.caches", uint64_t{0});
  write(r.reply, "overhead.total", m.overhead());
  write(r.reply, "keys.count", m.keys);
  write(r.reply, "keys.bytes-per-key", m.keys == 0 ? 0 : m.dataset / m.keys);
  write(r.reply, "dataset.bytes", m.dataset);
  write(r.reply, "dataset.percentage", 100 * ratio(m.dataset, m.used - memory.startup_bytes));
  write(r.reply, "peak.percentage", 100 * ratio(m.used, memory.peak_bytes));
}
constexpr size_t kOwn = 16;

void write_process(Request& r, const MemoryReport& m) {
  const auto held = static_cast<uint64_t>(m.host.private_bytes);
  const auto resident = static_cast<uint64_t>(m.host.rss_bytes);
  write(r.reply, "allocator.allocated", m.used);
  write(r.reply, "allocator.active", held);
  write(r.reply, "allocator-fragmentation.ratio", ratio(held, m.used));
  write_difference(r.reply, "allocator-fragmentation.bytes", held, m.used);
  write(r.reply, "rss-overhead.ratio", ratio(resident, held));
  write_difference(r.reply, "rss-overhead.bytes", resident, held);
  write(r.reply, "fragmentation", ratio(resident, m.used));
  write_difference(r.reply, "fragmentation.bytes", resident, m.used);
}
constexpr size_t kProcess = 8;

std::string percent(double part) { return std::to_string(static_cast<int64_t>(100 * part)) + " %"; }

}  // namespace

void cmd_memory_stats(Request& r) {
  const MemoryReport m = look(r);
  r.reply.map(kOwn + kProcess);
  write_own(r, m);
  write_process(r, m);
}

void cmd_memory_doctor(Request& r) {
  constexpr uint64_t kLittle = uint64_t{5} << 20U;  // below it the figures mean little
  constexpr double kMuchMore = 1.4;
  constexpr double kNearLimit = 0.9;
  const MemoryReport m = look(r);
  const uint64_t limit = r.s().config.limits.memory_bytes;
  const auto resident = static_cast<uint64_t>(m.host.rss_bytes);
  std::string text;
  if (limit != 0 && ratio(m.used, limit) >= kNearLimit) {
    text += "Memory in use is " + percent(ratio(m.used, limit)) +
            " of maxmemory: beyond it the server rejects commands that need more. Raise maxmemory, or "
            "delete keys.\n";
  }
  if (m.used >= kLittle && ratio(r.s().memory.peak_bytes, m.used) >= kMuchMore) {
    text += "The peak of memory in use was " + percent(ratio(r.s().memory.peak_bytes, m.used)) +
            " of the present use: the process may not have freed all of it.\n";
  }
  if (m.used >= kLittle && ratio(resident, m.used) >= kMuchMore) {
    text += "The resident memory is " + percent(ratio(resident, m.used)) +
            " of the memory in use: the rest is free blocks, clients' buffers and scripts.\n";
  }
  if (m.clients >= kLittle && m.clients > m.dataset) {
    text += "The buffers of clients take " + std::to_string(m.clients) +
            " bytes, more than all keys: see qbuf in CLIENT LIST, and client-output-buffer-limit.\n";
  }
  r.reply.verbatim(text.empty() ? "No problem found. Memory in use: " + std::to_string(m.used) + " bytes.\n"
                                : text);
}

void cmd_memory_malloc_stats(Request& r) {
  const auto& report = r.s().config.allocator_report;
  r.reply.verbatim(report ? report() : "No report of the allocator is available.\n");
}

void cmd_memory_help(Request& r) {
  static constexpr std::string_view kLines[] = {
      "DOCTOR",
      "    Return memory problems reports.",
      "MALLOC-STATS",
      "    Return internal statistics report from the memory allocator.",
      "STATS",
      "    Return information about the memory usage of the server.",
      "USAGE <key> [SAMPLES <count>]",
      "    Return memory in bytes used by <key> and its value. Nested values are",
      "    counted in full, for any <count>.",
  };
  reply_help(r, kLines);
}

}  // namespace holdfast
