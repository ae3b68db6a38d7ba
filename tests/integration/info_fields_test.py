#!/usr/bin/env python3
"""INFO has the fields that dashboards of Redis read, in the form that Redis gives them. The table has the
fields of redis_exporter (github.com/oliver006/redis_exporter). Closes with "N passed, N failed".
HOLDFAST_SERVER and REDIS_SERVER name the servers."""
import re
import sys

sys.dont_write_bytecode = True  # build/ is the only place for what is made
from harness import HOLDFAST, REDIS, Server, equal, run_tests, test

FIELDS = """
redis_version redis_build_id redis_mode os run_id tcp_port process_id uptime_in_seconds hz configured_hz
connected_clients blocked_clients tracking_clients client_recent_max_output_buffer
client_recent_max_input_buffer maxclients clients_in_timeout_table
allocator_active allocator_allocated allocator_resident allocator_frag_ratio allocator_frag_bytes
allocator_rss_ratio allocator_rss_bytes rss_overhead_ratio rss_overhead_bytes used_memory used_memory_rss
used_memory_peak used_memory_peak_perc used_memory_lua used_memory_overhead used_memory_startup
used_memory_dataset used_memory_dataset_perc used_memory_vm_eval used_memory_scripts used_memory_functions
number_of_cached_scripts number_of_functions number_of_libraries maxmemory maxmemory_policy
mem_fragmentation_ratio mem_fragmentation_bytes mem_clients_slaves mem_clients_normal mem_cluster_links
mem_aof_buffer mem_replication_backlog mem_total_replication_buffers mem_not_counted_for_evict
total_system_memory lazyfree_pending_objects active_defrag_running
loading async_loading rdb_changes_since_last_save rdb_bgsave_in_progress rdb_last_save_time
rdb_last_bgsave_status rdb_last_bgsave_time_sec rdb_current_bgsave_time_sec rdb_last_cow_size
aof_enabled aof_rewrite_in_progress aof_rewrite_scheduled aof_last_rewrite_time_sec
aof_current_rewrite_time_sec aof_last_cow_size aof_current_size aof_base_size aof_pending_rewrite
aof_buffer_length aof_pending_bio_fsync aof_delayed_fsync aof_last_bgrewrite_status aof_last_write_status
module_fork_in_progress module_fork_last_cow_size
total_connections_received total_commands_processed instantaneous_ops_per_sec total_net_input_bytes
total_net_output_bytes total_net_repl_input_bytes total_net_repl_output_bytes instantaneous_input_kbps
instantaneous_output_kbps instantaneous_input_repl_kbps instantaneous_output_repl_kbps
rejected_connections sync_full sync_partial_ok sync_partial_err expired_keys expired_stale_perc
expired_time_cap_reached_count evicted_keys evicted_clients keyspace_hits keyspace_misses pubsub_channels
pubsub_patterns pubsubshard_channels latest_fork_usec total_forks migrate_cached_sockets
slave_expires_tracked_keys active_defrag_hits active_defrag_misses active_defrag_key_hits
active_defrag_key_misses tracking_total_keys tracking_total_items tracking_total_prefixes
unexpected_error_replies total_error_replies
role connected_slaves master_replid master_repl_offset second_repl_offset repl_backlog_active
repl_backlog_size repl_backlog_first_byte_offset repl_backlog_histlen
used_cpu_sys used_cpu_user used_cpu_sys_children used_cpu_user_children cluster_enabled
cmdstat_set latency_percentiles_usec_set errorstat_ERR db0
""".split()

# Fields that the server does not have, with the reason. redis_exporter then has no such series.
ABSENT = {
    "expire_cycle_cpu_milliseconds": "each key expires in its own millisecond, not in a cycle",
    "used_memory_vm_functions": "scripts and functions share one Lua state",
}

FORMS = [("number", r"-?\d+"), ("decimal", r"-?\d+\.\d+"), ("percent", r"-?\d+(\.\d+)?%"),
         ("pairs", r"[\w.]+=[^,=]*(,[\w.]+=[^,=]*)*"), ("text", r".*")]


def form(value):
    return next(name for name, pattern in FORMS if re.fullmatch(pattern, value))


def names_of_pairs(value):
    return [pair.split("=")[0] for pair in value.split(",")]


def info_of(folder, command):
    with Server(folder, "--appendonly", "yes", command=command) as server:
        server.ask("SET", "key", "value", "PX", "100000")
        server.ask("GET")
        text = server.ask("INFO", "everything").decode()
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


@test
def info_has_the_fields_of_dashboards_in_the_form_of_redis(folder):
    redis_folder = folder.parent / "redis"
    redis_folder.mkdir()
    redis = info_of(redis_folder, REDIS)
    ours = info_of(folder, HOLDFAST)
    equal([name for name in FIELDS if name not in redis], [])
    equal([name for name in FIELDS if name not in ours], [])
    equal({name: form(ours[name]) for name in FIELDS}, {name: form(redis[name]) for name in FIELDS})
    for name in "cmdstat_set", "latency_percentiles_usec_set", "errorstat_ERR", "db0":
        equal(names_of_pairs(ours[name]), names_of_pairs(redis[name]))


@test
def a_field_that_is_listed_as_absent_is_absent(folder):
    ours = info_of(folder, HOLDFAST)
    equal([name for name in ABSENT if name in ours], [])


@test
def the_figures_are_plausible(folder):
    ours = info_of(folder, HOLDFAST)
    number = {name: float(ours[name].rstrip("%")) for name in FIELDS if form(ours[name]) != "text"
              and form(ours[name]) != "pairs"}
    for name in "used_memory", "used_memory_rss", "used_memory_peak":  # ASan's allocator has no figures
        equal((name, number[name] > 0), (name, True))
    equal(number["used_memory_peak"] >= number["used_memory"], True)
    equal(number["used_memory_dataset"] + number["used_memory_overhead"], number["used_memory"])
    equal(number["connected_clients"], 1)
    equal(number["total_commands_processed"] >= 2, True)
    equal(ours["ready"], "yes")


run_tests()
