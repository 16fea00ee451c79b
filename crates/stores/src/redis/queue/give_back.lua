-- What an instance holds waits again, untouched, but for what it knows of; one that leaves is gone then.
--
-- Asked: epoch, known (ids), most, leaves. Gives: how many went back.
local known = {}
for _, id in ipairs(asked.known) do
  known[id] = true
end
local given_back = orphan(asked.epoch, asked.most, false, known)
if asked.leaves and given_back < asked.most then
  redis.call('ZREM', INSTANCES, asked.epoch)
end
enter()
return given_back
