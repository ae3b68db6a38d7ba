-- LEASE CONFIRM: makes all keys of a lease permanent.
--   KEYS   those of its grant
--   ARGV   id
-- Reply: the lease's token, which a client may use as etag of the values.
-- Errors: those of Holdfast's LEASE CONFIRM; ERR these are not the keys of the lease, ERR a lease's key
-- must be ..., ERR a token key must be ... After -EXPIRED because of a lost key the other keys of the lease
-- are removed.

if #KEYS < 3 or #KEYS % 2 ~= 1 or #ARGV ~= 1 then return wrong_arity('lease|confirm') end

local function confirm()
  local l, own = whole_lease()
  if not l then return own end
  for _, s in ipairs(own) do
    local h = s.holders[1]
    expire(s.key, -1)
    h.deadline, h.ttl, h.lease = -1, 0, '0'
    record_exclusive(s, h)
    keep_record(s, s.ms)  -- the value stays for ever, but its token key may expire
  end
  end_lease(l, 'confirmed')
  return l.token
end

if on_holdfast then return redis.pcall('LEASE', 'CONFIRM', ARGV[1]) end
return check_lease_keys(ARGV[1]) or confirm()
