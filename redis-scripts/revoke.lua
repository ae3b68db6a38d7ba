-- LOCKS REVOKE: asks the holders of a key to release it, by an event on its channel. Changes no lock.
--   KEYS   lock, its token key
--   ARGV   -
-- Reply: the number of holders, subscribed or not; 0: the lock is free, and there is no event.
-- Errors: those of Holdfast's LOCKS REVOKE; ERR a token key must be ...

if #KEYS ~= 2 or #ARGV ~= 0 then return wrong_arity('locks|revoke') end

local function revoke()
  local s = look(KEYS[1], KEYS[2])
  if not s or #s.holders == 0 then return 0 end
  call('PUBLISH', '__lock__:' .. s.key, 'revoke')
  return #s.holders
end

if on_holdfast then return redis.pcall('LOCKS', 'REVOKE', KEYS[1]) end
return check_token_key(KEYS[1], KEYS[2]) or revoke()
