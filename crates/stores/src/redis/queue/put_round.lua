-- Puts the URLs of a round on the list and notes the round, unless that was done or the list is too long.
--
-- Asked: entry, due, max_waiting, and what is forgotten by now. ARGV[3] and on: URLs. Gives: 0 put before,
-- 1 done, 2 too deep; how many waited.
local last = redis.call('ZSCORE', ROUNDS, asked.entry)
if last and tonumber(last) >= asked.due then
  return { 0, 0 }
end
local before = waiting()
if #ARGV > 2 and asked.max_waiting > 0 and before >= asked.max_waiting then
  return { 2, before }
end
-- No more at once than fit on the stack.
for from = 3, #ARGV, 1000 do
  redis.call('RPUSH', LIST, unpack(ARGV, from, math.min(from + 999, #ARGV)))
end
redis.call('ZADD', ROUNDS, string.format('%.0f', asked.due), asked.entry)
redis.call('ZREMRANGEBYSCORE', ROUNDS, '-inf', string.format('%.0f', asked.forgotten))
enter()
return { 1, before }
