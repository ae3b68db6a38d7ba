-- LEASE CONFIRM: makes all keys of a lease permanent.
--   KEYS   as of its grant
--   ARGV   id
-- Reply: the lease's token, which may serve as etag of the values.
-- Errors: those of Holdfast's LEASE CONFIRM, among them -EXPIRED where the lease has lost a key: then the
-- rest of its keys are removed; ERR these are not the keys of the lease, ERR a lease's key must be ...,
-- ERR a token key must be ...

if #KEYS < 3 or #KEYS % 2 ~= 1 or #ARGV ~= 1 then return wrong_arity('lease|confirm') end

local function confirm()
  local l, own = whole_lease()
  if not l then return own end
  for _, s in ipairs(own) do
    local h = s.holders[1]
    expire(s.key, -1)
    h.deadline, h.ttl, h.lease = -1, 0, '0'
    note_exclusive(s, h)
    keep_record(s, s.ms)  -- the value stays for ever; what is noted of it need not
  end
  end_lease(l, 'confirmed')
  return l.token
end

if on_holdfast then return redis.pcall('LEASE', 'CONFIRM', ARGV[1]) end
return check_lease_keys(ARGV[1]) or confirm()
