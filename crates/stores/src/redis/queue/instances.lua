-- The instances whose leases have not ended, and how much there is to be put back on the list besides theirs.
--
-- Gives: for each instance its epoch, when its lease ends, in how many microseconds that is, and how many jobs it
-- holds; then how many jobs stand outside of the list and are in nobody's hands.
local instances = {}
for n, epoch in ipairs(redis.call('ZRANGEBYSCORE', INSTANCES, '(' .. digits(now), '+inf')) do
  local ends_at = tonumber(redis.call('ZSCORE', INSTANCES, epoch))
  instances[n] = { tonumber(epoch), ends_at, ends_at - now, redis.call('ZCOUNT', LEASED, epoch, epoch) }
end
return { instances, redis.call('HLEN', JOBS) - redis.call('ZCARD', DEAD) - redis.call('ZCARD', LEASED) }
