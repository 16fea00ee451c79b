-- Puts URLs at the end of the list, as producers do, and says at once how many wait now.
--
-- ARGV[3] and on: URLs.
redis.call('RPUSH', LIST, unpack(ARGV, 3))
enter()
return redis.status_reply('OK')
