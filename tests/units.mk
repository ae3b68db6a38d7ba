# Units of the tests: part of src/units.mk. The files of a unit define no name twice, which is all
# that they have in common. The tests of the library for programs have their own, since its Result is another than the
# server's. A new file needs no unit: it compiles alone.
$(call unit,tests-unit-1,$(patsubst %,tests/unit/%.cc,\
  acl_test buffer_test busy_poll_test cores_test engine_test packed_hash_test replay_test \
  service_notify_test store_backup_test store_save_test syntax_test))
$(call unit,tests-unit-2,$(patsubst %,tests/unit/%.cc,\
  arena_test disconnect_test field_deadlines_test files_test glob_test heap_release_test parse_test \
  script_limits_test store_crash_test store_restart_test timing_wheel_test))
$(call unit,tests-unit-3,$(patsubst %,tests/unit/%.cc,\
  config_file_test hash_body_test known_bodies_test log_test option_secrets_test small_parts_test))
$(call unit,tests-unit-4,$(patsubst %,tests/unit/%.cc,\
  history_test line_limit_test list_body_test meta_repair_test saved_clock_test store_replies_test \
  tls_test))
$(call unit,tests-unit-5,$(patsubst %,tests/unit/%.cc,\
  rdb_test snapshot_test store_folder_test subscribers_test))
$(call unit,tests-unit-6,$(patsubst %,tests/unit/%.cc,\
  backup_test store_test))
$(call unit,tests-unit-7,$(patsubst %,tests/unit/%.cc,\
  metrics_test resp_test store_full_disk_test zset_body_test))
$(call unit,tests-unit-8,$(patsubst %,tests/unit/%.cc,\
  crash_files_test script_memory_test store_missing_test))
$(call unit,tests-unit-9,$(patsubst %,tests/unit/%.cc,\
  chunked_requests_test journal_frame_test store_info_test))
$(call unit,tests-unit-10,$(patsubst %,tests/unit/%.cc,\
  large_value_test meta_test))
$(call unit,tests-unit-11,$(patsubst %,tests/unit/%.cc,\
  holders_test rdb_deadlines_test))
$(call unit,tests-unit-12,$(patsubst %,tests/unit/%.cc,\
  keyspace_test request_batch_test))
$(call unit,tests-client-1,$(patsubst %,tests/unit/%.cc,\
  client_parts_test note_test printable_test redlock_heal_test redlock_keep_test redlock_test \
  top_test validity_test wait_report_test))
$(call unit,tests-client-2,$(patsubst %,tests/unit/%.cc,\
  client_meter_test lease_client_test login_test redlock_retry_test))
$(call unit,tests-unit-13,$(patsubst %,tests/unit/%.cc,\
  replay_forms_test script_faults_test script_library_memory_test))
$(call unit,tests-integration-1,$(patsubst %,tests/integration/%.cc,\
  chaos_count_test limits_test listen_test lock_test locks_single_test locks_tls_test \
  process protocol_test pubsub_test redis_test))
$(call unit,tests-integration-2,$(patsubst %,tests/integration/%.cc,\
  chaos_client client_loop_test script_test server_harness))
$(call unit,tests-integration-3,$(patsubst %,tests/integration/%.cc,\
  chaos_servers client_stats_test locks_test))
$(call unit,tests-integration-4,$(patsubst %,tests/integration/%.cc,\
  client_tls_test embedded_test login_test redis_rig))
$(call unit,tests-integration-5,$(patsubst %,tests/integration/%.cc,\
  chaos_record skewed_clock))
$(call unit,tests-server-1,$(patsubst %,tests/simulation/server/%.cc,\
  disk oracle_ends process server_commands server_features server_options server_runs server_values \
  server_world server_world_checks uv))
$(call unit,tests-server-2,$(patsubst %,tests/simulation/server/%.cc,\
  machine oracle scheduler server_generator server_world_clients uv_streams))
$(call unit,tests-server-3,$(patsubst %,tests/simulation/server/%.cc,\
  combinations server_scripts server_stories view))
$(call unit,tests-redlock,$(wildcard tests/simulation/redlock_*.cc))
$(call unit,tests-ticket,$(wildcard tests/simulation/ticket_*.cc))
$(call unit,tests-replay,$(wildcard tests/simulation/replay_*.cc))
$(call unit,tests-model,$(filter-out %/frame.cc,$(wildcard tests/simulation/*.cc)))
$(call unit,tests-fuzz-1,$(patsubst %,tests/fuzz/%.cc,\
  engine http meta rdb replay_test))
$(call unit,tests-fuzz-2,$(patsubst %,tests/fuzz/%.cc,\
  journal requests scripts))
$(call unit,tests-fuzz-3,$(patsubst %,tests/fuzz/%.cc,\
  lua options))
$(call unit,tests-fuzz-4,$(patsubst %,tests/fuzz/%.cc,\
  acl backup changed_test))
