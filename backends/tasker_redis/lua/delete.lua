-- delete(queue): deletes the queue and its messages.
redis.call('SREM', names, ARGV[1])
redis.call('DEL', stream, delayed)
return 1
