-- LEASE GRANT: writes values with a TTL under free keys, all or none.
--   KEYS   the lease's key, then for each key: key, its token key
--   ARGV   id ttl value [value ...]       one value for each key, in the order of the keys
-- Replies
--   [id, token]            all keys were free and are written; the token is larger than all their earlier
--                          tokens
--   [null, [key, ...]]     these keys are not free, in the order of KEYS; the script wrote nothing
-- Errors: those of Holdfast's LEASE GRANT; ERR a lease's key must be ..., ERR a token key must be ...,
--   ERR the id * ...       Redis has no random numbers for scripts; choose an id
-- The values are ordinary strings, and locks with the value as owner. An id is unique within its slot.

if #KEYS < 3 or #KEYS % 2 ~= 1 or #ARGV ~= 2 + (#KEYS - 1) / 2 then return wrong_arity('lease|grant') end

local function grant_on_holdfast()
  local pairs_given = {}
  for i = 2, #KEYS, 2 do
    table.insert(pairs_given, KEYS[i])
    table.insert(pairs_given, ARGV[2 + i / 2])
  end
  return redis.pcall('LEASE', 'GRANT', ARGV[1], ARGV[2], unpack(pairs_given))
end

-- Returns an error if KEYS has a key twice.
local function check_different()
  local seen = {}
  for i = 2, #KEYS, 2 do
    if seen[KEYS[i]] then return redis.error_reply('ERR a key is given twice') end
    seen[KEYS[i]] = true
  end
end

-- Returns the states of the free keys, and the other keys.
local function look_at_keys()
  local free, taken = {}, {}
  for i = 2, #KEYS, 2 do
    local s = look(KEYS[i], KEYS[i + 1])
    if s and #s.holders == 0 then table.insert(free, s) else table.insert(taken, KEYS[i]) end
  end
  return free, taken
end

local function write_lease(l, states)
  call('DEL', KEYS[1])  -- an earlier lease with this id has ended
  call('HSET', KEYS[1], 'state', 'granted', 'token', digits(l.token), 'ttl', digits(l.ttl), 'deadline',
       digits(l.deadline), 'keys', #states)
  expire(KEYS[1], l.deadline + DAY_MS)
  for i, s in ipairs(states) do
    local h = new_hold(s, ARGV[2 + i], 1)
    h.token, h.lease, h.deadline, h.ttl = l.token, digits(l.token), l.deadline, l.ttl
    s.last = l.token
    call('HSET', KEYS[1], 'key:' .. i, s.key, 'value:' .. i, redis.sha1hex(h.owner))
    call('SET', s.key, h.owner)
    expire(s.key, h.deadline)
    record_exclusive(s, h)
    tell(s.key, 'granted', h.owner, h.token)
  end
end

local function grant()
  local id = ARGV[1]
  if #id < 1 or #id > 512 then return redis.error_reply('ERR id must be 1 to 512 bytes') end
  local ttl, wrong = read_number(ARGV[2], 'ttl', 1, MAX)
  wrong = wrong or check_different()
  if wrong then return wrong end
  local l = look_at_lease()
  if l.state == 'granted' then return redis.error_reply('ERR lease id is in use') end
  local states, taken = look_at_keys()
  if #taken > 0 then return {false, taken} end
  l.token, l.ttl, l.deadline = 0, ttl, end_of(l.ms, ttl)
  for _, s in ipairs(states) do l.token = math.max(l.token, next_token(s, 0)) end
  write_lease(l, states)
  return {id, l.token}
end

if on_holdfast then return grant_on_holdfast() end
if ARGV[1] == '*' then
  return redis.error_reply('ERR the id * is not possible on Redis: choose a unique name')
end
return check_lease_keys(ARGV[1]) or grant()
