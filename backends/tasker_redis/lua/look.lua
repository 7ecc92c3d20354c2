-- look(): returns the last stream id, 1 if a returned message waits, and the milliseconds until the next delayed
-- message is due (-1: there is none).
if missing() then return false end
promote()
local info = redis.call('XINFO', 'STREAM', stream)
local last = ''
for i = 1, #info, 2 do
  if info[i] == 'last-generated-id' then last = info[i + 1] end
end
local returned = redis.call('XPENDING', stream, GROUP, 'IDLE', HORIZON, '-', '+', 1)
local due = redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2]
local wait = due and math.max(0, math.ceil(due - now_us() / 1000)) or -1
return {last, #returned, wait}
