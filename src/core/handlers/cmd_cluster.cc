// CLUSTER: describes one node that owns all slots. ROLE and WAIT: describe a master without replicas.
#include <array>
#include <string>

#include "core/base/config.h"
#include "core/base/hash_slot.h"
#include "core/codec/reply.h"
#include "core/command/handlers.h"
#include "core/handlers/info_line.h"
#include "core/state/conn.h"
#include "core/state/request.h"

namespace holdfast {

namespace {

constexpr int64_t kBusPortOffset = 10000;

struct Address {
  std::string host;
  int64_t port = 0;
};

// Returns the server address that this client connected to, without the brackets of IPv6.
Address own_address(const Request& r) {
  const std::string& local = r.c.local;
  Address a;
  const size_t colon = local.rfind(':');
  if (!local.starts_with('/') && colon != std::string::npos) a.host = local.substr(0, colon);
  if (a.host.starts_with('[')) a.host = a.host.substr(1, a.host.size() - 2);
  if (r.s().config.host_facts) a.port = r.s().config.host_facts().tcp_port;
  return a;
}

}  // namespace

void cmd_cluster_info(Request& r) {
  std::string text;
  append_info_line(text, "cluster_enabled", "0");
  append_info_line(text, "cluster_state", "ok");
  for (const std::string_view name : {"cluster_slots_assigned", "cluster_slots_ok"})
    append_info_line(text, name, "16384");
  for (const std::string_view name : {"cluster_slots_pfail", "cluster_slots_fail"})
    append_info_line(text, name, "0");
  for (const std::string_view name : {"cluster_known_nodes", "cluster_size"})
    append_info_line(text, name, "1");
  for (const std::string_view name : {"cluster_current_epoch", "cluster_my_epoch"})
    append_info_line(text, name, "0");
  r.reply.verbatim(text);
}

void cmd_cluster_myid(Request& r) { r.reply.bulk(r.s().config.run_id); }
// The only shard has the id of its only node.
void cmd_cluster_myshardid(Request& r) { cmd_cluster_myid(r); }

void cmd_cluster_nodes(Request& r) {
  const Address a = own_address(r);
  r.reply.verbatim(r.s().config.run_id + " " + a.host + ":" + std::to_string(a.port) + "@" +
                   std::to_string(a.port + kBusPortOffset) + " myself,master - 0 0 0 connected 0-16383\n");
}

void cmd_cluster_slots(Request& r) {
  const Address a = own_address(r);
  r.reply.array(1);
  r.reply.array(3);
  r.reply.integer(0);
  r.reply.integer(kHashSlots - 1);
  r.reply.array(4);
  r.reply.bulk(a.host);
  r.reply.integer(a.port);
  r.reply.bulk(r.s().config.run_id);
  r.reply.array(0);
}

void cmd_cluster_shards(Request& r) {
  const Address a = own_address(r);
  r.reply.array(1);
  r.reply.map(2);
  r.reply.bulk("slots");
  r.reply.array(2);
  r.reply.integer(0);
  r.reply.integer(kHashSlots - 1);
  r.reply.bulk("nodes");
  r.reply.array(1);
  r.reply.map(7);
  r.reply.pair("id", r.s().config.run_id);
  r.reply.pair("port", a.port);
  r.reply.pair("ip", a.host);
  r.reply.pair("endpoint", a.host);
  r.reply.pair("role", "master");
  r.reply.pair("replication-offset", 0);
  r.reply.pair("health", "online");
}

void cmd_cluster_keyslot(Request& r) { r.reply.integer(hash_slot(r.arg(2))); }

void cmd_cluster_help(Request& r) {
  static constexpr std::string_view kLines[] = {
      "INFO",
      "    Return information about the cluster: one node, which owns all slots.",
      "KEYSLOT <key>",
      "    Return the hash slot for <key>.",
      "MYID",
      "    Return the node id.",
      "MYSHARDID",
      "    Return the node's shard id.",
      "NODES",
      "    Return cluster configuration seen by node. Output format:",
      "    <id> <ip:port@bus-port> <flags> <master> <pings> <pongs> <epoch> <link> <slot> ...",
      "SHARDS",
      "    Return information about slot range mappings and the nodes associated with them.",
      "SLOTS",
      "    Return information about slots range mappings. Each range is made of:",
      "    start, end, master and replicas IP addresses, ports and ids",
  };
  reply_help(r, kLines);
}

void cmd_role(Request& r) {
  r.reply.array(3);
  r.reply.bulk("master");
  r.reply.integer(0);
  r.reply.array(0);
}

// There are no replicas, so WAIT returns at once.
void cmd_wait(Request& r) {
  const auto replicas = parse_int(r.arg(1));
  if (!replicas) return reply_not_an_integer(r);
  const auto timeout = parse_int(r.arg(2));
  if (!timeout) return r.reply.error("ERR timeout is not an integer or out of range");
  if (*timeout < 0) return r.reply.error("ERR timeout is negative");
  r.reply.integer(0);
}

}  // namespace holdfast
