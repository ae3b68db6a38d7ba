-- LOCKS INFO: the holders of a key.
--   KEYS   lock, its token key
--   ARGV   -
-- Replies
--   null   the lock is free
--   array  alternating names and values, as Holdfast's LOCKS INFO in RESP2; the same in RESP3:
--          key, mode (exclusive, shared, limit), limit, delay (0), holders, waiters (an empty array: Redis
--          has no queue). A holder is also an array of names and values: owner, token, mode, limit, ttl (ms
--          left; -1: it does not expire), held, renewed (ms since), session (0), client (null), addr and
--          name (empty: Redis tells a script nothing about connections), note.
-- Errors: those of Holdfast's LOCKS INFO; ERR a token key must be ...
-- The script may write: it gives a token to a hold that another program made.

if #KEYS ~= 2 or #ARGV ~= 0 then return wrong_arity('locks|info') end

local function mode_of(capacity)
  if capacity == 1 then return 'exclusive', 1 end
  if capacity == SHARED then return 'shared', 0 end
  return 'limit', capacity
end

local function row(s, h)
  local mode, limit = mode_of(h.capacity)
  local renewed = h.deadline < 0 and h.since or h.deadline - h.ttl
  return {'owner', h.owner, 'token', h.token, 'mode', mode, 'limit', limit, 'ttl',
          h.deadline < 0 and -1 or h.deadline - s.ms, 'held', math.max(s.ms - h.since, 0), 'renewed',
          math.max(s.ms - renewed, 0), 'session', 0, 'client', false,
          'addr', '', 'name', '', 'note', h.note}
end

local function info()
  local s = look(KEYS[1], KEYS[2])
  if not s then return WRONG_TYPE end
  local first = s.holders[1]
  if not first then return false end
  if first.token == 0 then
    first.token = next_token(s, 0)
    record_exclusive(s, first)
  end
  local rows, least = {}, SHARED
  for _, h in ipairs(s.holders) do
    table.insert(rows, row(s, h))
    least = math.min(least, h.capacity)
  end
  local mode, limit = mode_of(least)
  return {'key', s.key, 'mode', mode, 'limit', limit, 'delay', 0, 'holders', rows, 'waiters', {}}
end

if on_holdfast then return redis.pcall('LOCKS', 'INFO', KEYS[1]) end
return check_token_key(KEYS[1], KEYS[2]) or info()
