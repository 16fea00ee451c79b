-- Gives a time to links that were noted without one.
--
-- ARGV: links.
for n = 3, #ARGV do
  local uid = ARGV[n]
  if redis.call('SISMEMBER', ATTEMPTED, uid) == 1 and not redis.call('ZSCORE', ATTEMPTED_AT, uid) then
    time_attempted(uid)
  end
end
