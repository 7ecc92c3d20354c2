-- settle(consumer, stream_id, deliveries, action, hidden_ms): 1 when the message was still held by that consumer since
-- that delivery, else 0 and nothing is changed. Actions: `ack` (away with it), `nack` (back, visible after `hidden_ms`),
-- `extend` (held on, visible to others after `hidden_ms`).
if missing() then return false end
local consumer, id, action = ARGV[1], ARGV[2], ARGV[4]
local holder = redis.call('XPENDING', stream, GROUP, id, id, 1)[1]
if not holder or holder[2] ~= consumer or holder[4] ~= tonumber(ARGV[3]) then return 0 end
if action == 'ack' then
  redis.call('XACK', stream, GROUP, id)
  redis.call('XDEL', stream, id)
else
  hide(action == 'nack' and RETURNED or consumer, {id}, tonumber(ARGV[5]))
end
return 1
