-- Renews an instance's lease, or begins a new epoch, and rescues what dead instances held.
--
-- Asked: epoch, ttl, most (to rescue). Gives: the epoch; whether there may be more to rescue; how many
-- leases the epoch holds; how many were rescued; whether the list of dead letters is shorter than our index.
local held = lives(asked.epoch)
local rescued = rescue(asked.most)

local epoch = asked.epoch
if not held then
  -- A server that lost its data counts from the start: by the time, no epoch is used twice all the same.
  epoch = math.max(tonumber(redis.call('HGET', LEDGER, 'last_epoch') or 0) + 1, now)
  redis.call('HSET', LEDGER, 'last_epoch', epoch)
end
redis.call('ZADD', INSTANCES, time_in(asked.ttl), epoch)

-- An instance of the version before this one rescues without a look at UNDER_WAY: what it left there is of
-- epochs that are gone.
local epochs = redis.call('ZRANGE', INSTANCES, 0, -1)
table.sort(epochs, function(a, b) return tonumber(a) < tonumber(b) end)
local after = '-inf'
for _, known in ipairs(epochs) do
  redis.call('ZREMRANGEBYSCORE', UNDER_WAY, after, '(' .. known)
  after = '(' .. known
end
redis.call('ZREMRANGEBYSCORE', UNDER_WAY, after, '+inf')

enter()
return {
  epoch, rescued == asked.most and 1 or 0, redis.call('ZCOUNT', LEASED, epoch, epoch), rescued,
  is_behind() and 1 or 0,
}
