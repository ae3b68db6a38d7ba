-- The common head of all scripts here. It must precede each of them, as Redis has no `require`. By hand:
--   cat common.lua lock.lua | redis-cli -x SCRIPT LOAD
--
-- The keys of a lock; README.md describes them in full:
--   the lock      KEYS[1]. Exclusive: a string with the owner as value, as SET key owner NX PX ms makes it.
--                 Shared or semaphore: a hash, as in a snapshot of Holdfast: the field holdfast:lock is 1,
--                 o:<owner> is "token capacity deadline ttl held-since delay session lease".
--   its token key KEYS[2], named by token_key() below. A hash: `of` (the lock), `last` (the largest token
--                 yet) and, for an exclusive hold, `owner` (its SHA-1) and `hold` (numbers as above). A
--                 hold with a note has n:<owner>: its token, a blank and the note.
-- Times are milliseconds of the server's wall clock (TIME); -1 is no deadline. All numbers are at most
-- 2^53, which Lua's doubles hold exactly.
--
-- Redis 7 replicates the effects of a script, not the script. Redis 5 and 6 need this call for that, as
-- the scripts read the clock (TIME).
if redis.replicate_commands then redis.replicate_commands() end

local call = redis.call
local MAX = 9007199254740991         -- 2^53 - 1: the largest ttl and the largest token
local SHARED = 4294967295            -- the capacity of a reader: no limit
local DAY_MS = 24 * 3600 * 1000
local LEAD_US = DAY_MS * 1000        -- a token that a client names may be this far ahead of the clock
local HEADROOM = 1099511627776       -- 2^40 tokens that no client may name: there is always a next one
local MARKER = 'holdfast:lock'
local WRONG_TYPE = redis.error_reply('WRONGTYPE Operation against a key holding the wrong kind of value')
local TOO_FAR = redis.error_reply('ERR token is further ahead than max-token-lead allows')

local function digits(n) return string.format('%.0f', n) end

-- On Holdfast each script calls the command of the same name: the commands have queues, and one count of
-- tokens for all clients.
local on_holdfast = redis.HOLDFAST_VERSION ~= nil

local function wrong_arity(command)
  return redis.error_reply("ERR wrong number of arguments for '" .. command .. "' command")
end

-- Returns the number that `text` is in decimal without sign or leading zeros; or nil and the error.
local function read_number(text, name, lowest, highest)
  local plain = text == '0' or (#text <= 16 and string.find(text, '^[1-9]%d*$'))
  local n = plain and tonumber(text)
  if n and n >= lowest and n <= highest then return n end
  return nil, redis.error_reply('ERR ' .. name .. ' must be an integer from ' .. digits(lowest) .. ' to ' ..
                                digits(highest))
end

-- Returns the part of a key that Redis Cluster hashes: the text in its first {}, or all of it.
local function slot_tag(key)
  local open = string.find(key, '{', 1, true)
  local close = open and string.find(key, '}', open + 1, true)
  return close and close > open + 1 and string.sub(key, open + 1, close - 1) or key
end
-- All clients must use the same name, or tokens would decrease. So the scripts check it.
local function token_key(key) return 'holdfast:token:{' .. slot_tag(key) .. '}' .. key end
local function check_token_key(key, record)
  if record ~= token_key(key) then
    return redis.error_reply('ERR a token key must be holdfast:token:{<hash tag of the key>}<key>')
  end
end

-- Returns the hold that `text` describes, as hold_text() wrote it; nil: `text` is not of that form.
local function read_hold(owner, text)
  local token, capacity, deadline, ttl, since, delay, session, lease =
    string.match(text, '^(%d+) (%d+) (%-?%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
  if not token then return nil end
  return {owner = owner, token = tonumber(token), capacity = tonumber(capacity),
          deadline = tonumber(deadline), ttl = tonumber(ttl), since = tonumber(since), delay = delay,
          session = session, lease = lease, note = ''}
end

local function hold_text(h)
  return table.concat({digits(h.token), digits(h.capacity), digits(h.deadline), digits(h.ttl),
                       digits(h.since), h.delay, h.session, h.lease}, ' ')
end

-- Returns a new hold without a token and without a deadline.
local function new_hold(s, owner, capacity)
  return {owner = owner, token = 0, capacity = capacity, deadline = -1, ttl = 0, since = s.ms, delay = '0',
          session = '0', lease = '0', note = ''}
end

-- Returns the deadline after `ttl`: at most MAX, as larger numbers would be rounded.
local function end_of(ms, ttl) return math.min(ms + ttl, MAX) end

local function start_time(s, h, ttl)
  h.ttl = ttl
  h.deadline = ttl == 0 and -1 or end_of(s.ms, ttl)
end

-- Returns the hold of a string; nil: it has expired. Redis keeps a key for one more millisecond, or until
-- the script ends: its PTTL is 0 then. If another program made the string (SET NX PX, a snapshot of
-- Holdfast), the token key has no record of it. Then the ttl is the time that is left now, and the token is
-- 0: not given yet.
local function exclusive_hold(s, owner, recorded_owner, recorded)
  local left = call('PTTL', s.key)
  if left == 0 then return nil end
  local h = recorded_owner == redis.sha1hex(owner) and read_hold(owner, recorded)
  -- The record may be of an earlier hold of this owner that has expired.
  if not h or (h.deadline >= 0 and h.deadline <= s.ms) then
    h = new_hold(s, owner, 1)
    h.ttl = math.max(left, 0)
  end
  h.deadline = left < 0 and -1 or s.ms + left
  return h
end

-- Reads the holds of a hash into s.holders, and the expired ones into s.expired. Returns false if the hash
-- is not a lock.
local function read_holders(s)
  local flat = call('HGETALL', s.key)
  local marked = false
  for i = 1, #flat, 2 do
    if flat[i] == MARKER and flat[i + 1] == '1' then
      marked = true
    else
      local h = string.sub(flat[i], 1, 2) == 'o:' and read_hold(string.sub(flat[i], 3), flat[i + 1])
      if not h then return false end
      s.last = math.max(s.last, h.token)
      table.insert(h.deadline >= 0 and h.deadline <= s.ms and s.expired or s.holders, h)
    end
  end
  table.sort(s.holders, function(a, b) return a.token < b.token end)
  return marked and #flat > 2
end

-- Returns the fields of the token key, and the notes in it by owner.
local function read_record(record)
  local flat, fields, notes = call('HGETALL', record), {}, {}
  for i = 1, #flat, 2 do
    if string.sub(flat[i], 1, 2) == 'n:' then
      notes[string.sub(flat[i], 3)] = flat[i + 1]
    else
      fields[flat[i]] = flat[i + 1]
    end
  end
  return fields, notes
end

local function note_text(h) return digits(h.token) .. ' ' .. h.note end

-- Gives the holds their notes. A note counts for the hold with its token only: another program may have
-- ended the hold that it was for.
local function read_notes(s)
  for _, h in ipairs(s.holders) do
    local token, note = string.match(s.notes[h.owner] or '', '^(%d+) (.*)$')
    if token and tonumber(token) == h.token then h.note = note end
  end
end

local function read_clock()
  local time = call('TIME')
  local us = time[1] * 1000000 + time[2]
  return us, math.floor(us / 1000)
end

-- Returns the state of a key, with its holders. nil: the key exists and is not a lock.
local function look(key, record)
  local us, ms = read_clock()
  local recorded, notes = read_record(record)
  local s = {key = key, record = record, us = us, ms = ms, holders = {}, expired = {}, notes = notes,
             recorded_last = tonumber(recorded.last or 0)}
  s.last = s.recorded_last
  s.kind = call('TYPE', key).ok
  if s.kind == 'string' then
    s.holders[1] = exclusive_hold(s, call('GET', key), recorded.owner, recorded.hold)
    if s.holders[1] then s.last = math.max(s.last, s.holders[1].token) end
  elseif s.kind ~= 'none' and (s.kind ~= 'hash' or not read_holders(s)) then
    return nil
  end
  read_notes(s)
  return s
end

local function own_hold(s, owner)
  for i, h in ipairs(s.holders) do
    if h.owner == owner then return h, i end
  end
end

-- Returns the token of a new grant: larger than all earlier ones, even if their count was lost (a failover,
-- a server that was emptied). For a token is at most the clock of its grant, unless a client named it.
local function next_token(s, hint)
  s.last = math.max(s.last + 1, s.us, hint)
  return s.last
end

local function token_is_near(s, token)
  return token <= MAX - HEADROOM and token <= math.max(s.us + LEAD_US, s.last + 1)
end

local function expire(key, deadline)
  if deadline < 0 then
    call('PERSIST', key)
  else
    call('PEXPIREAT', key, digits(deadline))
  end
end

-- Sets the expiry of the token key: a day after the end of the hold that it describes, and at least a day
-- after the last token. From then on the clock alone gives larger tokens. While a hold without a deadline
-- lasts, the token key does not expire.
local function keep_record(s, deadline)
  if deadline < 0 then return expire(s.record, -1) end
  expire(s.record, math.max(s.ms, deadline, math.floor(s.last / 1000)) + DAY_MS)
end

-- Writes the notes of the holds, and removes those of holds that have ended. Returns the last deadline of a
-- hold with a note, or `ms` if there is none.
local function keep_notes(s)
  local last, stale = s.ms, s.notes
  for _, h in ipairs(s.holders) do
    if h.note ~= '' then
      if stale[h.owner] ~= note_text(h) then
        call('HSET', s.record, 'of', s.key, 'last', digits(s.last), 'n:' .. h.owner, note_text(h))
      end
      stale[h.owner] = nil
      last = (h.deadline < 0 or last < 0) and -1 or math.max(last, h.deadline)
    end
  end
  for owner in pairs(stale) do call('HDEL', s.record, 'n:' .. owner) end
  return last
end

local function record_exclusive(s, h)
  call('HSET', s.record, 'of', s.key, 'last', digits(s.last), 'owner', redis.sha1hex(h.owner), 'hold',
       hold_text(h))
  keep_notes(s)
  keep_record(s, h.deadline)
end

-- Records the last token and the notes, and that there is no exclusive hold.
local function record_no_exclusive(s)
  if s.last > s.recorded_last then call('HSET', s.record, 'of', s.key, 'last', digits(s.last)) end
  call('HDEL', s.record, 'owner', 'hold')
  keep_record(s, keep_notes(s))
end

-- Writes the hold of a shared lock or of a semaphore.
local function write_holder(s, h)
  if s.kind == 'string' then call('DEL', s.key) end
  s.kind = 'hash'
  call('HSET', s.key, MARKER, '1', 'o:' .. h.owner, hold_text(h))
end

-- Finishes a change of the holders of a hash. Removes the expired holders that did not return. The key
-- expires with the last remaining holder, so that no key outlives its lock.
local function settle(s)
  for _, h in ipairs(s.expired) do
    if not own_hold(s, h.owner) then call('HDEL', s.key, 'o:' .. h.owner) end
  end
  local last = 0
  for _, h in ipairs(s.holders) do
    last = (h.deadline < 0 or last < 0) and -1 or math.max(last, h.deadline)
  end
  if #s.holders == 0 then
    call('DEL', s.key)
  else
    expire(s.key, last)
  end
end

-- Publishes an event as Holdfast does. The waiters of the key subscribe, and retry after each event.
local function tell(key, event, owner, token)
  call('PUBLISH', '__lock__:' .. key, event .. ' ' .. owner .. (token and ' ' .. digits(token) or ''))
end
-- Notifies the waiters of an earlier deadline: they sleep until the deadline that the hold had before.
local function tell_nearer_end(s, h, before)
  if h.deadline >= 0 and (before < 0 or h.deadline < before) then tell(s.key, 'renewed', h.owner) end
end
