-- Renews an instance's lease, or begins a new epoch, and rescues what dead instances held.
--
-- Asked: epoch, ttl, most (to rescue). Gives: the epoch; whether there may be more to rescue; how many
-- leases the epoch holds; how many were rescued.
local held = lives(asked.epoch)

local left = asked.most
for _, dead in ipairs(redis.call('ZRANGEBYSCORE', INSTANCES, '-inf', now)) do
  left = left - orphan(dead, left, true, {})
  if left == 0 then
    break
  end
  redis.call('ZREM', INSTANCES, dead)
end

local epoch = asked.epoch
if not held then
  -- A server that lost its data counts from the start: by the time, no epoch is used twice all the same.
  epoch = math.max(tonumber(redis.call('HGET', LEDGER, 'last_epoch') or 0) + 1, now)
  redis.call('HSET', LEDGER, 'last_epoch', epoch)
end
redis.call('ZADD', INSTANCES, time_in(asked.ttl), epoch)
enter()
return { epoch, left == 0 and 1 or 0, redis.call('ZCOUNT', LEASED, epoch, epoch), asked.most - left }
