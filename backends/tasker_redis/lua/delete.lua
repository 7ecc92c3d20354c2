-- delete(queue): the queue with its messages.
redis.call('SREM', names, ARGV[1])
redis.call('DEL', stream, delayed)
return 1
