-- Common beginning of every script: the keys of one queue and operations on them.
--
-- An entry is delivered again once it has been idle for HORIZON. To hide it for a shorter time, its idle time is set to
-- the rest of the horizon (XCLAIM ... IDLE); JUSTID keeps that from counting as a delivery.
local stream, delayed, meta, names = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local GROUP = 'tasker'
local RETURNED = 'returned'  -- consumer that owns returned messages
local HORIZON = 30 * 24 * 3600 * 1000
local BURST = 1000

local function now_us()
  local now = redis.call('TIME')
  return now[1] * 1000000 + now[2]
end

local function text(number)
  return string.format('%.0f', number)
end

local function missing()
  return redis.call('EXISTS', stream) == 0
end

-- The first of `count` consecutive ids. They begin at the time when the first queue was created, so that a server that
-- lost its data does not use an id twice.
local function new_ids(count)
  return redis.call('HGET', meta, 'epoch') + redis.call('HINCRBY', meta, 'sent', count) - count + 1
end

local function add(id, payload)
  redis.call('XADD', stream, '*', 'id', id, 'payload', payload)
end

-- Moves due delayed messages to the stream. A member is 'ID:PAYLOAD', its score the due time in milliseconds.
local function promote()
  local due = redis.call('ZRANGEBYSCORE', delayed, '-inf', text(now_us() / 1000), 'LIMIT', 0, BURST)
  for _, member in ipairs(due) do
    local colon = string.find(member, ':', 1, true)
    add(string.sub(member, 1, colon - 1), string.sub(member, colon + 1))
    redis.call('ZREM', delayed, member)
  end
end

local function hide(consumer, ids, milliseconds)
  local command = {'XCLAIM', stream, GROUP, consumer, 0}
  for _, id in ipairs(ids) do table.insert(command, id) end
  for _, word in ipairs({'IDLE', text(HORIZON - milliseconds), 'JUSTID'}) do table.insert(command, word) end
  redis.call(unpack(command))
end
