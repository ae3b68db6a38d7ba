-- LOCKS BREAK: ends all holds of a key by force, and tells those who wait.
--   KEYS   lock, its token key
--   ARGV   -
-- Reply: the number of holds that ended; 0 nobody held the key.
-- Errors: those of Holdfast's LOCKS BREAK; ERR a token key must be ...
-- A lock-delay that a hold was taken with on Holdfast does not follow. What is no lock is left alone.

if #KEYS ~= 2 or #ARGV ~= 0 then return wrong_arity('locks|break') end

local function break_lock()
  local s = look(KEYS[1], KEYS[2])
  if not s or #s.holders == 0 then return 0 end
  call('DEL', s.key)
  note_no_exclusive(s)
  for _, h in ipairs(s.holders) do tell(s.key, 'broken', h.owner) end
  return #s.holders
end

if on_holdfast then return redis.pcall('LOCKS', 'BREAK', KEYS[1]) end
return check_token_key(KEYS[1], KEYS[2]) or break_lock()
