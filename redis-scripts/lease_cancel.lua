-- LEASE CANCEL: removes the keys that a lease still has.
--   KEYS   those of its grant
--   ARGV   id
-- Reply: OK. Also OK if the lease has expired; then the script changes nothing.
-- Errors: those of Holdfast's LEASE CANCEL; ERR these are not the keys of the lease, ERR a lease's key must
-- be ..., ERR a token key must be ...

if #KEYS < 3 or #KEYS % 2 ~= 1 or #ARGV ~= 1 then return wrong_arity('lease|cancel') end

local function cancel()
  local l = look_at_lease()
  if l.state == 'expired' then return redis.status_reply('OK') end
  if l.state ~= 'granted' then return fate(l.state) end
  local wrong = check_same_keys(l)
  if wrong then return wrong end
  remove_own_keys((own_keys(l)))
  end_lease(l, 'cancelled')
  return redis.status_reply('OK')
end

if on_holdfast then return redis.pcall('LEASE', 'CANCEL', ARGV[1]) end
return check_lease_keys(ARGV[1]) or cancel()
