-- stats(seen_ms): messages, age in milliseconds of the first one in the stream (-1: none), consumers that asked for
-- messages within the last `seen_ms`, and messages in flight.
if missing() then return false end
local first = redis.call('XRANGE', stream, '-', '+', 'COUNT', 1)[1]
local age = first and math.max(0, now_us() / 1000 - string.match(first[1], '%d+')) or -1
local consumers, held = 0, 0
for _, flat in ipairs(redis.call('XINFO', 'CONSUMERS', stream, GROUP)) do
  local consumer = {}
  for i = 1, #flat, 2 do consumer[flat[i]] = flat[i + 1] end
  if consumer.name ~= RETURNED then
    held = held + consumer.pending
    if consumer.idle < tonumber(ARGV[1]) then consumers = consumers + 1 end
  end
end
return {redis.call('XLEN', stream) + redis.call('ZCARD', delayed), age, consumers, held}
