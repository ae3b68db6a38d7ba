-- LEASE RENEW: resets the TTL of a lease.
--   KEYS   those of its grant
--   ARGV   id [ttl]      without ttl: the last ttl that a client gave
-- Reply: 1.
-- Errors: those of Holdfast's LEASE RENEW; ERR these are not the keys of the lease, ERR a lease's key must
-- be ..., ERR a token key must be ... After -EXPIRED because of a lost key the rest of the lease's keys are
-- removed.

if #KEYS < 3 or #KEYS % 2 ~= 1 or #ARGV < 1 or #ARGV > 2 then return wrong_arity('lease|renew') end

local function renew()
  local ttl, wrong = nil, nil
  if ARGV[2] then
    ttl, wrong = read_number(ARGV[2], 'ttl', 1, MAX)
    if not ttl then return wrong end
  end
  local l, own = whole_lease()
  if not l then return own end
  ttl = ttl or l.ttl
  for _, s in ipairs(own) do
    local h = s.holders[1]
    start_time(s, h, ttl)
    expire(s.key, h.deadline)
    record_exclusive(s, h)
    if ttl < l.ttl then tell(s.key, 'renewed', h.owner) end  -- the deadline may be earlier now
  end
  call('HSET', KEYS[1], 'ttl', digits(ttl), 'deadline', digits(end_of(l.ms, ttl)))
  expire(KEYS[1], end_of(l.ms, ttl) + DAY_MS)
  return 1
end

if on_holdfast then return redis.pcall('LEASE', 'RENEW', unpack(ARGV)) end
return check_lease_keys(ARGV[1]) or renew()
