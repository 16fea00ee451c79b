-- Stores the memory of a feed and releases its claim, unless the claim was lost.
--
-- KEYS: the claims, the memories. ARGV: the feed, the claimant, the memory. Gives: 1 if it was stored, else 0.
local held = redis.call('HGET', KEYS[1], ARGV[1])
if string.match(held or '', '^%d+ (.*)$') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
redis.call('HDEL', KEYS[1], ARGV[1])
return 1
