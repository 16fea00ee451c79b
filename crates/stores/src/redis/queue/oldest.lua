-- When the oldest job was accepted that has not ended: it waits, is delayed, or is in somebody's hands.
--
-- Asked: most. Gives: the time; when, or nothing.
--
-- An instance of the version before this one ends jobs without taking them off ACCEPTED: those are taken off here,
-- `most` at a time.
local oldest
for _ = 1, asked.most do
  local first = redis.call('ZRANGE', ACCEPTED, 0, 0, 'WITHSCORES')
  local job = first[1] and find(first[1])
  if not first[1] or (job and not job.reason) then
    oldest = tonumber(first[2])
    break
  end
  redis.call('ZREM', ACCEPTED, first[1])
end
return { now, oldest or false }
