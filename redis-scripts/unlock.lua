-- UNLOCK: releases a hold, and notifies the waiters.
--   KEYS   lock, its token key
--   ARGV   owner
-- Replies: 1: released; 0: the lock is free; -1: it is held, but not by this owner.
-- Errors: those of Holdfast's UNLOCK; ERR a token key must be ...
-- The script removes the hold first, as that needs no memory. So UNLOCK works at maxmemory.

if #KEYS ~= 2 or #ARGV ~= 1 then return wrong_arity('unlock') end

local function unlock()
  local owner = ARGV[1]
  local s = look(KEYS[1], KEYS[2])
  if not s then return WRONG_TYPE end
  if #s.holders == 0 then return 0 end
  local h, place = own_hold(s, owner)
  if not h then return -1 end
  table.remove(s.holders, place)
  if s.kind == 'string' then
    call('DEL', s.key)
  else
    call('HDEL', s.key, 'o:' .. owner)
    settle(s)
  end
  record_no_exclusive(s)
  tell(s.key, 'released', owner)
  return 1
end

if on_holdfast then return redis.pcall('UNLOCK', KEYS[1], ARGV[1]) end
return check_token_key(KEYS[1], KEYS[2]) or unlock()
