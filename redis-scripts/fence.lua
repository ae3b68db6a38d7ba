-- FENCE: raises the token of a hold to at least the given one, and the count of the key with it. For a lock
-- on several servers that must have the same token on each.
--   KEYS   lock, its token key
--   ARGV   owner token
-- Replies: the hold's new token; 0: the lock is free; -1: it is held, but not by this owner.
-- Errors: those of Holdfast's FENCE; ERR a token key must be ...

if #KEYS ~= 2 or #ARGV ~= 2 then return wrong_arity('fence') end

local function fence()
  local token, wrong = read_number(ARGV[2], 'token', 0, MAX)
  if not token then return wrong end
  local s = look(KEYS[1], KEYS[2])
  if s and not token_is_near(s, token) then return TOO_FAR end
  if not s then return WRONG_TYPE end
  if #s.holders == 0 then return 0 end
  local h = own_hold(s, ARGV[1])
  if not h then return -1 end
  local present = h.token
  if present == 0 then present = next_token(s, 0) end
  local raised = math.max(present, token)
  if raised == h.token then return raised end
  h.token = raised
  s.last = math.max(s.last, raised)
  if s.kind == 'string' then
    record_exclusive(s, h)
  else
    write_holder(s, h)
    record_no_exclusive(s)
  end
  return raised
end

if on_holdfast then return redis.pcall('FENCE', KEYS[1], ARGV[1], ARGV[2]) end
return check_token_key(KEYS[1], KEYS[2]) or fence()
