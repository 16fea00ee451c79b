-- Claims each feed that nobody else holds.
--
-- KEYS: the claims. ARGV: the time and the end of the claim, in microseconds; the claimant; the feeds.
-- Gives: 1 for each that was granted, 0 for each that was not.
local granted = {}
for n = 4, #ARGV do
  local held = redis.call('HGET', KEYS[1], ARGV[n])
  local ends, holder = string.match(held or '', '^(%d+) (.*)$')
  local free = not ends or holder == ARGV[3] or tonumber(ends) <= tonumber(ARGV[1])
  if free then redis.call('HSET', KEYS[1], ARGV[n], ARGV[2] .. ' ' .. ARGV[3]) end
  granted[#granted + 1] = free and 1 or 0
end
return granted
