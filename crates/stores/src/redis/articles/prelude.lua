-- What every script of articles begins with: the time, and how an attempt is noted.
--
-- KEYS: the set of attempted links and their times; then each script's own, all of them.
-- ARGV: the time in microseconds, or '' for the server's own; how long an attempt counts, in seconds; then
-- each script's own.
local ATTEMPTED, ATTEMPTED_AT = KEYS[1], KEYS[2]
local ATTEMPTED_FOR = tonumber(ARGV[2])

local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
local now_s = math.floor(now / 1000000)

local function time_attempted(uid)
  redis.call('ZADD', ATTEMPTED_AT, now_s, uid)
  redis.call('EXPIRE', ATTEMPTED_AT, ATTEMPTED_FOR)
end

local function note_attempt(uid)
  redis.call('SADD', ATTEMPTED, uid)
  redis.call('EXPIRE', ATTEMPTED, ATTEMPTED_FOR)
  time_attempted(uid)
end
