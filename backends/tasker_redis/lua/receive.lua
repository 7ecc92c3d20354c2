-- receive(consumer, limit, hidden_ms, cursor, first): returns up to `limit` messages, hidden from now on. `first`
-- selects which come first, the `new` messages or the `returned` ones: the caller alternates, so that neither starves
-- the other. Returns the cursor of the search for returned ones, then id, payload, count of deliveries and stream id.
if missing() then return false end
local consumer, limit, hidden, cursor = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local EXAMINED = 1000  -- entries of other consumers that one call may skip, 10 for each that it may claim
local found, taken = {}, {}
promote()

local function take(entry, deliveries)
  local fields = {}
  for i = 1, #entry[2], 2 do fields[entry[2][i]] = entry[2][i + 1] end
  local stamp, sequence = string.match(entry[1], '(%d+)-(%d+)')
  local id = fields.id or text(stamp * 1000 + sequence)  -- a message of another sender has no id
  table.insert(taken, entry[1])
  table.insert(found, {id, fields.payload or '', deliveries, entry[1]})
end

local function take_returned()
  local left = EXAMINED
  while #found < limit and left > 0 do
    local room = limit - #found
    local reply = redis.call('XAUTOCLAIM', stream, GROUP, consumer, HORIZON, cursor, 'COUNT', room)
    for _, entry in ipairs(reply[2]) do
      if entry then
        take(entry, redis.call('XPENDING', stream, GROUP, entry[1], entry[1], 1)[1][4])
      end
    end
    cursor, left = reply[1], left - 10 * room
    if cursor == '0-0' then return end
  end
end

local function take_new()
  if #found == limit then return end
  local reply = redis.call('XREADGROUP', 'GROUP', GROUP, consumer, 'COUNT', limit - #found, 'STREAMS', stream, '>')
  for _, entry in ipairs(reply and reply[1][2] or {}) do take(entry, 1) end
end

if ARGV[5] == 'new' then
  take_new()
  take_returned()
else
  take_returned()
  take_new()
end
if #taken > 0 then hide(consumer, taken, hidden) end
return {cursor, found}
