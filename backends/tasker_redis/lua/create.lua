-- create(queue, forget_ms): creates the queue, read from its first message, so that no earlier message is missed.
-- Returns the time at which the first queue was created on this server.
--
-- Removes the consumers of processes that are gone: their number grows only when processes join a queue. A consumer
-- with messages is kept until others have taken these over.
redis.call('HSETNX', meta, 'epoch', text(now_us()))
redis.call('SADD', names, ARGV[1])
if missing() then
  redis.call('XGROUP', 'CREATE', stream, GROUP, '0', 'MKSTREAM')
end
for _, flat in ipairs(redis.call('XINFO', 'CONSUMERS', stream, GROUP)) do
  local consumer = {}
  for i = 1, #flat, 2 do consumer[flat[i]] = flat[i + 1] end
  if consumer.pending == 0 and consumer.idle > tonumber(ARGV[2]) then
    redis.call('XGROUP', 'DELCONSUMER', stream, GROUP, consumer.name)
  end
end
return redis.call('HGET', meta, 'epoch')
