-- LOCK: acquires a lock, or replies that it is held. The script never waits: the client does.
--   KEYS   lock, its token key
--   ARGV   owner ttl [SHARED | LIMIT n] [TOKEN hint] [NOTE text] [LEFT]
--          as of Holdfast's LOCK; LEFT: see below
-- Replies
--   [owner, token]   granted; a holder that repeats its request gets the token that it has
--   null             not granted. With LEFT an integer instead: the milliseconds until the first hold
--                    expires unless it is renewed; -1: no hold expires
-- Errors: those of Holdfast's LOCK, word for word, and
--   ERR <option> is not possible on Redis: ...     options of Holdfast alone: WAIT, ASYNC, SESSION, DELAY
--   ERR the owner * ...                            Redis has no random numbers for scripts; choose an owner
--   ERR a token key must be ...
-- Admission is one rule: holders + 1 <= the least capacity of the request and of all holders. There is no
-- queue: after a release the first request gets the lock, and a stream of readers can starve a writer.
-- The first write is the one that may need memory (SET, HSET). At maxmemory Redis rejects it before the
-- script has changed anything.

if #KEYS ~= 2 or #ARGV < 2 then return wrong_arity('lock') end

local ONLY_HOLDFAST = {
  WAIT = 'the client waits, for the events of the key and LEFT',
  ASYNC = 'the client waits, for the events of the key and LEFT',
  SESSION = 'it does not tell scripts of the end of a connection',
  DELAY = 'it does not tell scripts of the end of a key',
}

-- Returns the options that follow the ttl; or nil and the error.
local function read_options()
  local o = {}
  local function number(i, name, lowest, highest)
    if o[name] or not ARGV[i + 1] then return redis.error_reply('ERR syntax error') end
    local n, wrong = read_number(ARGV[i + 1], name, lowest, highest)
    o[name] = n
    return wrong
  end
  local i = 3
  while ARGV[i] do
    local word, wrong = string.upper(ARGV[i]), nil
    if word == 'LIMIT' then
      wrong = number(i, word, 1, 2147483647)
      i = i + 1
    elseif word == 'TOKEN' then
      wrong = number(i, word, 0, MAX)
      i = i + 1
    elseif word == 'NOTE' and not o.NOTE and ARGV[i + 1] then
      o.NOTE = ARGV[i + 1]
      wrong = #o.NOTE > 256 and redis.error_reply('ERR NOTE must be at most 256 bytes')
      i = i + 1
    elseif (word == 'SHARED' or word == 'LEFT') and not o[word] then
      o[word] = true
    elseif ONLY_HOLDFAST[word] then
      wrong = redis.error_reply('ERR ' .. word .. ' is not possible on Redis: ' .. ONLY_HOLDFAST[word])
    else
      wrong = redis.error_reply('ERR syntax error')
    end
    if wrong then return nil, wrong end
    i = i + 1
  end
  if o.SHARED and o.LIMIT then return nil, redis.error_reply('ERR syntax error') end
  return o
end

-- Returns the milliseconds until the first hold expires; -1: no hold expires.
local function left_of(s)
  local left = -1
  for _, h in ipairs(s.holders) do
    if h.deadline >= 0 and (left < 0 or h.deadline - s.ms < left) then
      left = math.max(h.deadline - s.ms, 0)
    end
  end
  return left
end

-- Makes the only hold of the key an exclusive one.
local function put_exclusive(s, h, ttl)
  start_time(s, h, ttl)
  call('SET', s.key, h.owner)  -- replaces a hash too
  expire(s.key, h.deadline)
  record_exclusive(s, h)
end

local function put_shared(s, h, ttl)
  start_time(s, h, ttl)
  write_holder(s, h)
  settle(s)
  record_no_exclusive(s)
end

-- Whether the key admits one more holder with this capacity, or `own`, one of its holders, with this new
-- capacity.
local function admits(s, capacity, own)
  if own then return #s.holders <= capacity end  -- the capacities of the other holders admit it already
  local least = capacity
  for _, h in ipairs(s.holders) do least = math.min(least, h.capacity) end
  return #s.holders + 1 <= least
end

local function reply(h) return {h.owner, h.token} end

-- Returns the reply of a grant; nil: not granted. `note` nil: a hold that exists keeps its note.
local function acquire(s, owner, ttl, capacity, hint, note)
  local h = own_hold(s, owner)
  local put = capacity == 1 and put_exclusive or put_shared
  local before = h and h.deadline
  if h and h.capacity == capacity then  -- a repeat
    if h.token == 0 then h.token = next_token(s, 0) end
    h.note = note or h.note
    put(s, h, ttl)
    tell_nearer_end(s, h, before)
    return reply(h)
  end
  if not admits(s, capacity, h) then return nil end
  local wider = h and capacity > h.capacity
  if wider then  -- the lock admits more holders now; the event below notifies the waiters
    if h.token == 0 then h.token = next_token(s, 0) end
    h.capacity = capacity
  else
    if not h then
      h = new_hold(s, owner, capacity)
      table.insert(s.holders, h)
    end
    h.capacity, h.since, h.token = capacity, s.ms, next_token(s, hint)
  end
  h.note = note or h.note
  put(s, h, ttl)
  tell(s.key, 'granted', owner, h.token)
  if before then tell_nearer_end(s, h, before) end
  return reply(h)
end

-- Returns the milliseconds until the first hold or the lock-delay of the key ends; -1: none ends.
local function first_end_on_holdfast()
  local info = redis.pcall('LOCKS', 'INFO', KEYS[1])
  if not info or info.err then return -1 end
  local left = info[8] > 0 and info[8] or -1
  for _, holder in ipairs(info[10]) do
    if holder[10] >= 0 and (left < 0 or holder[10] < left) then left = holder[10] end
  end
  return left
end

local function lock_on_holdfast()
  local words, wants_left = {}, false
  for i, word in ipairs(ARGV) do
    local is_text = i > 3 and string.upper(words[#words]) == 'NOTE' and not words.text_at
    if is_text then words.text_at = i end
    if i > 2 and not is_text and string.upper(word) == 'LEFT' and not wants_left then
      wants_left = true
    else
      table.insert(words, word)
    end
  end
  local granted = redis.pcall('LOCK', KEYS[1], unpack(words))
  if granted or not wants_left then return granted end
  return first_end_on_holdfast()
end

local function lock()
  local owner = ARGV[1]
  if owner == '*' then
    return redis.error_reply('ERR the owner * is not possible on Redis: choose a unique name')
  end
  if #owner < 1 or #owner > 512 then return redis.error_reply('ERR owner must be 1 to 512 bytes') end
  local ttl, wrong_ttl = read_number(ARGV[2], 'ttl', 0, MAX)
  if not ttl then return wrong_ttl end
  local o, wrong = read_options()
  if not o then return wrong end
  local s = look(KEYS[1], KEYS[2])
  if not s then return WRONG_TYPE end
  local hint = o.TOKEN or 0
  if hint > 0 and not token_is_near(s, hint) then return TOO_FAR end
  local granted = acquire(s, owner, ttl, o.SHARED and SHARED or o.LIMIT or 1, hint, o.NOTE)
  return granted or (o.LEFT and left_of(s)) or false
end

if on_holdfast then return lock_on_holdfast() end
return check_token_key(KEYS[1], KEYS[2]) or lock()
