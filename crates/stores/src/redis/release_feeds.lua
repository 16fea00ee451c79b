-- Releases the claims on feeds, unless they were lost.
--
-- KEYS: the claims. ARGV: the claimant; the feeds.
for n = 2, #ARGV do
  local held = redis.call('HGET', KEYS[1], ARGV[n])
  if string.match(held or '', '^%d+ (.*)$') == ARGV[1] then redis.call('HDEL', KEYS[1], ARGV[n]) end
end
