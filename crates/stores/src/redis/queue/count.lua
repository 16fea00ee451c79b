-- How things stand, at one moment: by the counters, by the things themselves, and how many URLs wait.
local told = redis.call('HMGET', LEDGER, 'accepted', 'done', 'skipped', 'queued', 'in_flight', 'delayed', 'dead')
for n, value in ipairs(told) do
  told[n] = tonumber(value or 0)
end
return { told, {
  redis.call('LLEN', LIST), redis.call('ZCARD', UNFILED), redis.call('ZCARD', PARKED),
  redis.call('SCARD', DELAYED), redis.call('ZCARD', LEASED), redis.call('ZCARD', DEAD), redis.call('HLEN', JOBS),
  redis.call('LLEN', DEAD_LIST), redis.call('ZCARD', UNDER_WAY),
}, waiting() }
