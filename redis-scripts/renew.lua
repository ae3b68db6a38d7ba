-- RENEW: resets the TTL of a hold.
--   KEYS   lock, its token key
--   ARGV   owner [ttl]      without ttl: the last ttl that the owner gave; 0: no expiry
-- Replies: 1: renewed; 0: the lock is free; -1: it is held, but not by this owner.
-- Errors: those of Holdfast's RENEW; ERR a token key must be ...
-- The ttl of a hold that no script here has seen before (from SET NX PX, or from a snapshot) is the time
-- that it has left at the first call. The script sets the new deadline first, as that needs no memory. So
-- RENEW works at maxmemory.

if #KEYS ~= 2 or #ARGV < 1 or #ARGV > 2 then return wrong_arity('renew') end

local function renew()
  local owner, ttl, wrong = ARGV[1], nil, nil
  if ARGV[2] then
    ttl, wrong = read_number(ARGV[2], 'ttl', 0, MAX)
    if not ttl then return wrong end
  end
  local s = look(KEYS[1], KEYS[2])
  if not s then return WRONG_TYPE end
  if #s.holders == 0 then return 0 end
  local h = own_hold(s, owner)
  if not h then return -1 end
  local before = h.deadline
  start_time(s, h, ttl or h.ttl)
  if s.kind == 'string' then
    expire(s.key, h.deadline)
    if h.token == 0 then h.token = next_token(s, 0) end
    record_exclusive(s, h)
  else
    settle(s)
    write_holder(s, h)
    if h.note ~= '' then record_no_exclusive(s) end  -- the note must last as long as the hold
  end
  tell_nearer_end(s, h, before)
  return 1
end

if on_holdfast then return redis.pcall('RENEW', KEYS[1], unpack(ARGV)) end
return check_token_key(KEYS[1], KEYS[2]) or renew()
