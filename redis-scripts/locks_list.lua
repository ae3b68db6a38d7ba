-- LOCKS LIST: its row for one key. Redis has no list of its locks, and a script's keys are in one slot. So
-- the client lists the keys by SCAN, on each master, and calls this script for each.
--   KEYS   key, the token key of a lock of that name
--   ARGV   -
-- Replies
--   null   the key is not a lock, or the lock is free
--   array  alternating names and values, as a row of Holdfast's LOCKS LIST in RESP2; the same in RESP3:
--          key, mode (exclusive, shared, limit), holders (their number), waiters (0: Redis has no queue),
--          token (the largest; 0: another program made the hold, and no script gave it a token yet), ttl
--          (ms until the last hold ends; -1: it does not expire), owner and note (of the holder with the
--          smallest token; owner is empty if token is 0).
-- Errors: ERR wrong number of arguments ...; ERR a token key must be ...
-- The client calls this script for keys of other programs too. So the script writes nothing, and reads no
-- value but a lock's.

if #KEYS ~= 2 or #ARGV ~= 0 then return wrong_arity('locks|list') end

local function list_row(key, mode, holders, waiters, token, ttl, owner, note)
  return {'key', key, 'mode', mode, 'holders', holders, 'waiters', waiters, 'token', token, 'ttl', ttl,
          'owner', owner, 'note', note}
end

local function mode_name(capacity)
  return capacity == 1 and 'exclusive' or capacity == SHARED and 'shared' or 'limit'
end

-- Without a token key there is no record of a string. Such a string may be large, so the script does not
-- read it.
local function row_of_string(key, record)
  local h, left = {token = 0}, call('PTTL', key)
  if left == 0 then return false end  -- it has expired
  if call('EXISTS', record) == 1 then h = look(key, record).holders[1] or h end
  local known = h.token > 0
  return list_row(key, 'exclusive', 1, 0, h.token, left, known and h.owner or '',
                  known and h.note or '')
end

local function row_of_hash(key, record)
  local s = call('HGET', key, MARKER) == '1' and look(key, record)
  if not s or #s.holders == 0 then return false end
  local least = SHARED
  for _, h in ipairs(s.holders) do least = math.min(least, h.capacity) end
  local first, last = s.holders[1], s.holders[#s.holders]
  return list_row(key, mode_name(least), #s.holders, 0, last.token, call('PTTL', key), first.owner,
                  first.note)
end

local function row()
  local key, record = KEYS[1], KEYS[2]
  local kind = call('TYPE', key).ok
  if kind == 'string' then return row_of_string(key, record) end
  return kind == 'hash' and row_of_hash(key, record)
end

local function row_on_holdfast()
  local info = redis.pcall('LOCKS', 'INFO', KEYS[1])
  if not info or info.err or #info[10] == 0 then return false end
  local ttl = 0
  for _, holder in ipairs(info[10]) do
    ttl = (ttl < 0 or holder[10] < 0) and -1 or math.max(ttl, holder[10])
  end
  local first, last = info[10][1], info[10][#info[10]]
  return list_row(KEYS[1], info[4], #info[10], #info[12], last[4], ttl, first[2], first[24] or '')
end

if on_holdfast then return row_on_holdfast() end
return check_token_key(KEYS[1], KEYS[2]) or row()
