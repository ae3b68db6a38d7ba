#include "redis_rig.h"

#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include "client/transport/redis_script.h"
#include "core/base/hash_slot.h"

namespace holdfast::integration {
namespace {

std::unique_ptr<Process> start(const Words& args, const std::filesystem::path& folder, int port) {
  Words all{"--port", std::to_string(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder.string()};
  all.insert(all.end(), args.begin(), args.end());
  auto process = std::make_unique<Process>(redis_program(), Launch{all});
  return process->out().wait_for("Ready to accept connections") ? std::move(process) : nullptr;
}

}  // namespace

std::string redis_program() {
  const char* named = std::getenv("REDIS_SERVER");
  return named != nullptr ? named : "build/redis-server";
}

RedisProcess::RedisProcess(const Words& args, int port)
    : port_(port == 0 ? free_port() : port), process_(start(args, folder_.path(), port_)) {
  if (process_ == nullptr) throw std::runtime_error("redis-server did not start");
}

Value RedisProcess::ask(const std::string& line) const {
  Rig rig(port_);  // addressed like Holdfast: sends commands unchanged, not as scripts
  return rig.ask(words_of(line));
}

std::string RedisProcess::info(const std::string& section, const std::string& name) const {
  const std::string text = "\n" + ask("INFO " + section).text;
  const size_t at = text.find("\n" + name + ":");
  if (at == std::string::npos) return {};
  const size_t begin = at + name.size() + 2;
  return text.substr(begin, text.find('\r', begin) - begin);
}

int64_t RedisServer::scripts() const {
  int64_t calls = 0;
  for (const char* name : {"cmdstat_evalsha", "cmdstat_eval"}) {
    const std::string stat = redis_.info("commandstats", name);
    if (!stat.empty()) calls += std::stoll(stat.substr(std::string("calls=").size()));
  }
  return calls;
}

RedisCluster::RedisCluster() {
  Words create{"redis-cli", "--cluster", "create"};
  for (int i = 0; i < 6; ++i) {
    nodes_.push_back(std::make_unique<RedisProcess>(Words{
        "--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--repl-diskless-sync-delay", "0"}));
    create.push_back(nodes_.back()->address());
  }
  create.insert(create.end(), {"--cluster-replicas", "1", "--cluster-yes"});
  Process maker("/usr/bin/env", Launch{create});
  if (maker.wait() != 0)
    throw std::runtime_error("cannot create the cluster: " + maker.out().text() + maker.err().text());
  for (const auto& node : nodes_) {
    until("the cluster is ready", [&] {
      const bool whole = node->ask("CLUSTER INFO").text.find("cluster_state:ok") != std::string::npos;
      const bool replica = node->info("replication", "role") == "slave";
      return whole && (!replica || node->info("replication", "master_link_status") == "up");
    });
  }
}

std::string RedisCluster::place() const {
  return "redis-cluster://" + nodes_[0]->address() + "," + nodes_[1]->address();
}

RedisProcess& RedisCluster::master_of(const std::string& key) {
  const int slot = hash_slot(key);
  for (const auto& node : nodes_) {
    if (!node->runs()) continue;
    for (const Value& row : node->ask("CLUSTER SLOTS").elements) {
      if (slot < row.elements[0].integer || slot > row.elements[1].integer) continue;
      for (const auto& master : nodes_) {
        if (master->port() == row.elements[2].elements[1].integer) return *master;
      }
    }
  }
  throw std::runtime_error("no node has the slot");
}

RedisProcess* RedisCluster::replica_of(const RedisProcess& master) {
  for (const auto& node : nodes_) {
    if (node->runs() && node->info("replication", "role") == "slave" &&
        node->info("replication", "master_port") == std::to_string(master.port()))
      return node.get();
  }
  return nullptr;
}

void RedisCluster::await_master(const std::string& key, const RedisProcess& wanted) {
  until("the failover", [&] { return &master_of(key) == &wanted; });
}

void RedisCluster::fail_over(const std::string& key, const RedisProcess& replica) {
  Clock::time_point next = Clock::now();
  until("the requested failover", [&] {
    if (Clock::now() >= next) {
      replica.ask("CLUSTER FAILOVER");
      next = Clock::now() + std::chrono::seconds(6);
    }
    return &master_of(key) == &replica;
  });
}

}  // namespace holdfast::integration
