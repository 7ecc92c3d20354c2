-- create(queue, forget_ms): the queue, read from its beginning, so that nothing sent before is passed over. Answers the
-- moment when the first queue was made on this server.
--
-- Consumers of processes that are gone are removed here: whoever joins a queue is what makes their number grow. One
-- that holds messages stays until others have taken them over.
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
