-- settle(consumer, action, hidden_ms, stream_id, deliveries, ...): for each message 1 if that consumer still had it
-- since that delivery, else 0 and it is not changed. Actions: `ack` (delete), `nack` (release, visible after
-- `hidden_ms`), `extend` (keep, visible to others after `hidden_ms`).
if missing() then return false end
local consumer, action, hidden = ARGV[1], ARGV[2], tonumber(ARGV[3])
local settled = {}
for i = 4, #ARGV, 2 do
  local id = ARGV[i]
  local holder = redis.call('XPENDING', stream, GROUP, id, id, 1)[1]
  local ours = holder and holder[2] == consumer and holder[4] == tonumber(ARGV[i + 1])
  if ours and action == 'ack' then
    redis.call('XACK', stream, GROUP, id)
    redis.call('XDEL', stream, id)
  elseif ours then
    hide(action == 'nack' and RETURNED or consumer, {id}, hidden)
  end
  table.insert(settled, ours and 1 or 0)
end
return settled
