-- LOCKS BREAK: ends all holds of a key by force, and notifies the waiters.
--   KEYS   lock, its token key
--   ARGV   -
-- Reply: the number of holds that ended; 0: the lock was free.
-- Errors: those of Holdfast's LOCKS BREAK; ERR a token key must be ...
-- No lock-delay follows, even if the hold was acquired with one on Holdfast. A key that is not a lock does
-- not change.

if #KEYS ~= 2 or #ARGV ~= 0 then return wrong_arity('locks|break') end

local function break_lock()
  local s = look(KEYS[1], KEYS[2])
  if not s or #s.holders == 0 then return 0 end
  local ended = s.holders
  s.holders = {}
  call('DEL', s.key)
  record_no_exclusive(s)
  for _, h in ipairs(ended) do tell(s.key, 'broken', h.owner) end
  return #ended
end

if on_holdfast then return redis.pcall('LOCKS', 'BREAK', KEYS[1]) end
return check_token_key(KEYS[1], KEYS[2]) or break_lock()
