// The handlers of all commands, as the rows of the command table name them. Each handler parses all
// arguments, makes all checks, changes the state once and replies once.
#pragma once

namespace holdfast {

struct Request;

// acl
void cmd_acl_cat(Request&), cmd_acl_deluser(Request&), cmd_acl_dryrun(Request&), cmd_acl_genpass(Request&),
    cmd_acl_getuser(Request&), cmd_acl_help(Request&), cmd_acl_list(Request&), cmd_acl_load(Request&),
    cmd_acl_log(Request&), cmd_acl_save(Request&), cmd_acl_setuser(Request&), cmd_acl_users(Request&),
    cmd_acl_whoami(Request&);

// lock
void cmd_fence(Request&), cmd_lease_cancel(Request&), cmd_lease_confirm(Request&),
    cmd_lease_grant(Request&), cmd_lease_help(Request&), cmd_lease_info(Request&),
    cmd_lease_renew(Request&), cmd_lock(Request&), cmd_locks_break(Request&), cmd_locks_check(Request&),
    cmd_locks_heartbeat(Request&), cmd_locks_help(Request&), cmd_locks_history(Request&),
    cmd_locks_top(Request&), cmd_locks_yield(Request&), cmd_locks_info(Request&), cmd_locks_list(Request&),
    cmd_locks_owned(Request&), cmd_locks_raise(Request&), cmd_locks_revoke(Request&), cmd_renew(Request&),
    cmd_unlock(Request&);

// string
void cmd_append(Request&), cmd_cl_throttle(Request&), cmd_decr(Request&), cmd_decrby(Request&),
    cmd_delex(Request&), cmd_delifeq(Request&), cmd_digest(Request&), cmd_get(Request&),
    cmd_getdel(Request&), cmd_getex(Request&), cmd_getrange(Request&), cmd_getset(Request&),
    cmd_incr(Request&), cmd_incrby(Request&), cmd_incrbyfloat(Request&), cmd_mget(Request&),
    cmd_mset(Request&), cmd_msetex(Request&), cmd_msetnx(Request&), cmd_psetex(Request&), cmd_set(Request&),
    cmd_setex(Request&), cmd_setnx(Request&), cmd_setrange(Request&), cmd_strlen(Request&),
    cmd_substr(Request&);

// generic
void cmd_copy(Request&), cmd_del(Request&), cmd_dump(Request&), cmd_exists(Request&), cmd_expire(Request&),
    cmd_expireat(Request&), cmd_expiretime(Request&), cmd_keys(Request&), cmd_object_encoding(Request&),
    cmd_object_freq(Request&), cmd_object_help(Request&), cmd_object_idletime(Request&),
    cmd_object_refcount(Request&), cmd_persist(Request&), cmd_pexpire(Request&), cmd_pexpireat(Request&),
    cmd_pexpiretime(Request&), cmd_pttl(Request&), cmd_randomkey(Request&), cmd_rename(Request&),
    cmd_renamenx(Request&), cmd_restore(Request&), cmd_scan(Request&), cmd_touch(Request&),
    cmd_ttl(Request&), cmd_type(Request&), cmd_wait(Request&);

// hash
void cmd_hdel(Request&), cmd_hexists(Request&), cmd_hget(Request&), cmd_hgetall(Request&),
    cmd_hexpire(Request&), cmd_hexpireat(Request&), cmd_hexpiretime(Request&), cmd_hgetdel(Request&),
    cmd_hgetex(Request&), cmd_hincrby(Request&), cmd_hincrbyfloat(Request&), cmd_hkeys(Request&),
    cmd_hlen(Request&), cmd_hmget(Request&), cmd_hmset(Request&), cmd_hpersist(Request&),
    cmd_hpexpire(Request&), cmd_hpexpireat(Request&), cmd_hpexpiretime(Request&), cmd_hpttl(Request&),
    cmd_hrandfield(Request&), cmd_hscan(Request&), cmd_hset(Request&), cmd_hsetex(Request&),
    cmd_hsetnx(Request&), cmd_hstrlen(Request&), cmd_httl(Request&), cmd_hvals(Request&);

// list
void cmd_blmove(Request&), cmd_blmpop(Request&), cmd_blpop(Request&), cmd_brpop(Request&),
    cmd_brpoplpush(Request&), cmd_lindex(Request&), cmd_linsert(Request&), cmd_llen(Request&),
    cmd_lmove(Request&), cmd_lmpop(Request&), cmd_lpop(Request&), cmd_lpos(Request&), cmd_lpush(Request&),
    cmd_lpushx(Request&), cmd_lrange(Request&), cmd_lrem(Request&), cmd_lset(Request&), cmd_ltrim(Request&),
    cmd_rpop(Request&), cmd_rpoplpush(Request&), cmd_rpush(Request&), cmd_rpushx(Request&);

// set
void cmd_sadd(Request&), cmd_scard(Request&), cmd_sdiff(Request&), cmd_sdiffstore(Request&),
    cmd_sinter(Request&), cmd_sintercard(Request&), cmd_sinterstore(Request&), cmd_sismember(Request&),
    cmd_smembers(Request&), cmd_smismember(Request&), cmd_smove(Request&), cmd_spop(Request&),
    cmd_srandmember(Request&), cmd_srem(Request&), cmd_sscan(Request&), cmd_sunion(Request&),
    cmd_sunionstore(Request&);

// sorted-set
void cmd_bzmpop(Request&), cmd_bzpopmax(Request&), cmd_bzpopmin(Request&), cmd_zadd(Request&),
    cmd_zcard(Request&), cmd_zcount(Request&), cmd_zdiff(Request&), cmd_zdiffstore(Request&),
    cmd_zincrby(Request&), cmd_zinter(Request&), cmd_zintercard(Request&), cmd_zinterstore(Request&),
    cmd_zlexcount(Request&), cmd_zmpop(Request&), cmd_zmscore(Request&), cmd_zpopmax(Request&),
    cmd_zpopmin(Request&), cmd_zrandmember(Request&), cmd_zrange(Request&), cmd_zrangebylex(Request&),
    cmd_zrangebyscore(Request&), cmd_zrangestore(Request&), cmd_zrank(Request&), cmd_zrem(Request&),
    cmd_zremrangebylex(Request&), cmd_zremrangebyrank(Request&), cmd_zremrangebyscore(Request&),
    cmd_zrevrange(Request&), cmd_zrevrangebylex(Request&), cmd_zrevrangebyscore(Request&),
    cmd_zrevrank(Request&), cmd_zscan(Request&), cmd_zscore(Request&), cmd_zunion(Request&),
    cmd_zunionstore(Request&);

// connection
void cmd_auth(Request&), cmd_client_caching(Request&), cmd_client_getname(Request&),
    cmd_client_getredir(Request&), cmd_client_help(Request&), cmd_client_id(Request&),
    cmd_client_info(Request&), cmd_client_kill(Request&), cmd_client_list(Request&),
    cmd_client_no_evict(Request&), cmd_client_no_touch(Request&), cmd_client_pause(Request&),
    cmd_client_reply(Request&), cmd_client_setinfo(Request&), cmd_client_setname(Request&),
    cmd_client_tracking(Request&), cmd_client_trackinginfo(Request&), cmd_client_unblock(Request&),
    cmd_client_unpause(Request&), cmd_echo(Request&), cmd_hello(Request&), cmd_ping(Request&),
    cmd_quit(Request&), cmd_reset(Request&), cmd_select(Request&);

// pubsub
void cmd_psubscribe(Request&), cmd_publish(Request&), cmd_pubsub_channels(Request&),
    cmd_pubsub_help(Request&), cmd_pubsub_numpat(Request&), cmd_pubsub_numsub(Request&),
    cmd_pubsub_shardchannels(Request&), cmd_pubsub_shardnumsub(Request&), cmd_punsubscribe(Request&),
    cmd_spublish(Request&), cmd_ssubscribe(Request&), cmd_subscribe(Request&), cmd_sunsubscribe(Request&),
    cmd_unsubscribe(Request&);

// scripting
void cmd_fcall(Request&), cmd_fcall_ro(Request&), cmd_function_delete(Request&),
    cmd_function_dump(Request&), cmd_function_flush(Request&), cmd_function_help(Request&),
    cmd_function_kill(Request&), cmd_function_list(Request&), cmd_function_load(Request&),
    cmd_function_restore(Request&), cmd_function_stats(Request&), cmd_discard(Request&), cmd_eval(Request&),
    cmd_eval_ro(Request&), cmd_evalsha(Request&), cmd_evalsha_ro(Request&), cmd_exec(Request&),
    cmd_multi(Request&), cmd_script_exists(Request&), cmd_script_flush(Request&), cmd_script_help(Request&),
    cmd_script_kill(Request&), cmd_script_load(Request&), cmd_unwatch(Request&), cmd_watch(Request&);

// server
void cmd_backup_help(Request&), cmd_backup_read(Request&), cmd_backup_start(Request&);
void cmd_cluster_help(Request&), cmd_cluster_info(Request&), cmd_cluster_keyslot(Request&),
    cmd_cluster_myid(Request&), cmd_cluster_myshardid(Request&), cmd_cluster_nodes(Request&),
    cmd_cluster_shards(Request&), cmd_cluster_slots(Request&), cmd_command(Request&),
    cmd_command_count(Request&), cmd_command_docs(Request&), cmd_command_getkeys(Request&),
    cmd_command_getkeysandflags(Request&), cmd_command_help(Request&), cmd_command_info(Request&),
    cmd_command_list(Request&), cmd_config_get(Request&), cmd_config_help(Request&),
    cmd_config_resetstat(Request&), cmd_config_rewrite(Request&), cmd_config_set(Request&),
    cmd_dbsize(Request&), cmd_debug(Request&), cmd_flushall(Request&), cmd_flushdb(Request&),
    cmd_info(Request&), cmd_latency_doctor(Request&), cmd_latency_graph(Request&),
    cmd_latency_help(Request&), cmd_latency_histogram(Request&), cmd_latency_history(Request&),
    cmd_latency_latest(Request&), cmd_latency_reset(Request&), cmd_memory_doctor(Request&),
    cmd_memory_help(Request&), cmd_memory_malloc_stats(Request&), cmd_memory_stats(Request&),
    cmd_memory_usage(Request&), cmd_module_help(Request&), cmd_module_list(Request&), cmd_monitor(Request&),
    cmd_role(Request&), cmd_bgrewriteaof(Request&), cmd_bgsave(Request&), cmd_lastsave(Request&),
    cmd_save(Request&), cmd_shutdown(Request&), cmd_slowlog_get(Request&), cmd_slowlog_help(Request&),
    cmd_slowlog_len(Request&), cmd_slowlog_reset(Request&), cmd_swapdb(Request&), cmd_time(Request&);

}  // namespace holdfast
