-- Forgets attempts that are over.
--
-- ARGV: how many at most. Gives: how many.
local over = redis.call('ZRANGEBYSCORE', ATTEMPTED_AT, '-inf', now_s - ATTEMPTED_FOR, 'LIMIT', 0, ARGV[3])
if #over > 0 then
  redis.call('SREM', ATTEMPTED, unpack(over))
  redis.call('ZREM', ATTEMPTED_AT, unpack(over))
end
return #over
