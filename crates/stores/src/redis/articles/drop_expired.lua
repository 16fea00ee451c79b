-- Takes out of an index what has no article any more.
--
-- KEYS: the index, then the article of each link. ARGV: SREM or ZREM; the links. Gives: how many.
local INDEX, dropped = KEYS[3], 0
for n = 4, #ARGV do
  if redis.call('HGET', KEYS[n], 'status') ~= 'success' then
    dropped = dropped + redis.call(ARGV[3], INDEX, ARGV[n])
  end
end
return dropped
