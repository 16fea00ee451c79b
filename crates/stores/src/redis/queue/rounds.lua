-- When the last round of each entry was due that was put.
--
-- ARGV[3] and on: entries. Gives: a time for each, -1 for one that has none.
local last = {}
for n = 3, #ARGV do
  last[n - 2] = tonumber(redis.call('ZSCORE', ROUNDS, ARGV[n]) or -1)
end
return last
