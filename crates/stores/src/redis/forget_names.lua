-- Forgets names of sites whose keys have expired. Each name is forgotten when its keys are, not before.
--
-- KEYS: the names, those of notable sites, and when each is forgotten (milliseconds).
-- ARGV: how many at most. Gives: how many.
local time = redis.call('TIME')
local now_ms = math.floor(time[1] * 1000 + time[2] / 1000)
local names = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now_ms, 'LIMIT', 0, ARGV[1])
for _, name in ipairs(names) do
  for _, key in ipairs(KEYS) do
    redis.call('ZREM', key, name)
  end
end
return #names
