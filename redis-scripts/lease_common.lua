-- The common part of the scripts for leases. It must follow common.lua. By hand:
--   cat common.lua lease_common.lua lease_grant.lua | redis-cli -x SCRIPT LOAD
--
-- A lease puts values under several keys, all or none. All its keys are in one slot. All its scripts have
--   KEYS   the lease's key, then for each of its keys, in the same order each time: key, its token key
-- lease_key() below gives the name of the lease's key. It is a hash: `state`, `token`, `ttl`, `deadline`,
-- `keys` (their number), and for the n-th key `key:n` and `value:n` (the SHA-1 of its value). It expires a
-- day after the lease, so that a later call gets the outcome of the lease.

local function lease_key(first_key, id) return 'holdfast:lease:{' .. slot_tag(first_key) .. '}' .. id end

-- Returns the error if a name in KEYS is wrong, else nil.
local function check_lease_keys(id)
  if KEYS[1] ~= lease_key(KEYS[2], id) then
    return redis.error_reply("ERR a lease's key must be holdfast:lease:{<hash tag of its first key>}<id>")
  end
  for i = 2, #KEYS, 2 do
    local wrong = check_token_key(KEYS[i], KEYS[i + 1])
    if wrong then return wrong end
  end
end

local function fate(state)
  if state == 'confirmed' then return redis.error_reply('CONFIRMED the lease is confirmed') end
  if state == 'cancelled' then return redis.error_reply('CANCELLED the lease was cancelled') end
  if state == 'expired' then return redis.error_reply('EXPIRED the lease has expired') end
  return redis.error_reply('NOLEASE no such lease')
end

-- Returns the lease. Its state is `none` if there is no such lease, and `expired` after its deadline.
local function look_at_lease()
  local us, ms = read_clock()
  local kept = call('HMGET', KEYS[1], 'state', 'token', 'ttl', 'deadline', 'keys')
  local l = {us = us, ms = ms, state = kept[1] or 'none', token = tonumber(kept[2] or 0),
             ttl = tonumber(kept[3] or 0), deadline = tonumber(kept[4] or 0), size = tonumber(kept[5] or 0)}
  if l.state == 'granted' and l.deadline <= ms then l.state = 'expired' end
  return l
end

local function end_lease(l, state)
  call('HSET', KEYS[1], 'state', state)
  expire(KEYS[1], l.ms + DAY_MS)
end

-- Returns the keys that a lease still has, as look() gives them, and whether they are all of its keys. Such
-- a key has the lease's value, and its hold has the lease's token. So a key that was released and acquired
-- again does not count, even with the same value.
local function own_keys(l)
  local own = {}
  for i = 1, l.size do
    local key, record = KEYS[2 * i], KEYS[2 * i + 1]
    local value = call('TYPE', key).ok == 'string' and call('GET', key)
    if value and redis.sha1hex(value) == call('HGET', KEYS[1], 'value:' .. i) then
      local s = look(key, record)
      local h = s.holders[1]
      if h and h.lease == digits(l.token) then table.insert(own, s) end
    end
  end
  return own, #own == l.size
end

local function check_same_keys(l)
  local same = #KEYS == 1 + 2 * l.size
  for i = 1, l.size do same = same and KEYS[2 * i] == call('HGET', KEYS[1], 'key:' .. i) end
  if not same then return redis.error_reply('ERR these are not the keys of the lease') end
end

local function remove_own_keys(own)
  for _, s in ipairs(own) do
    local owner = s.holders[1].owner
    s.holders = {}
    call('DEL', s.key)
    record_no_exclusive(s)
    tell(s.key, 'released', owner)
  end
end

-- Returns the lease and its keys if the lease is granted and has all of its keys; or nil and the error. If
-- the lease has lost a key, removes the rest of its keys, and the lease expires.
local function whole_lease()
  local l = look_at_lease()
  if l.state ~= 'granted' then return nil, fate(l.state) end
  local wrong = check_same_keys(l)
  if wrong then return nil, wrong end
  local own, all = own_keys(l)
  if all then return l, own end
  remove_own_keys(own)
  end_lease(l, 'expired')
  return nil, fate('expired')
end
