-- send(delay_ms, payload...): returns the first id; the others are consecutive.
if missing() then return false end
local delay = tonumber(ARGV[1])
local first = new_ids(#ARGV - 1)
local due = text(now_us() / 1000 + delay)
for i = 2, #ARGV do
  local id = text(first + i - 2)
  if delay > 0 then
    redis.call('ZADD', delayed, due, id .. ':' .. ARGV[i])
  else
    add(id, ARGV[i])
  end
end
return text(first)
