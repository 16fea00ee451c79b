-- One step of many processes' politeness: compares and sets, and tells what stands, by the server's time.
--
-- KEYS: the run, then two keys a site (rate_limit:, circuit:).
-- ARGV: the server's run id, then either nothing more (it only reads), or five values a site: both
-- texts as they were read, both as they shall be ('' stands for none), and milliseconds to keep them.
-- Gives: the time, until when the past may be forgotten (both in microseconds), then for each site
-- both texts when it only reads, or 1 or 0 when it was to set.
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000000 + time[2])

-- A server that started anew, or lost its keys, may have forgotten what happened until now.
local run = redis.call('HMGET', KEYS[1], 'id', 'lost_until')
if run[1] ~= ARGV[1] then
  run[2] = now
  redis.call('HSET', KEYS[1], 'id', ARGV[1], 'lost_until', now)
end

-- A key of somebody else's making, of another type, counts as none.
local function text(key)
  local value = redis.pcall('GET', key)
  return type(value) == 'string' and value or ''
end

local function set(key, value, keep_ms)
  if value == '' then
    redis.call('DEL', key)
  else
    redis.call('SET', key, value, 'PX', keep_ms)
  end
end

local answer = { now, run[2] }
for site = 0, (#KEYS - 1) / 2 - 1 do
  local rate_limit, circuit = KEYS[2 + 2 * site], KEYS[3 + 2 * site]
  if #ARGV == 1 then
    answer[#answer + 1] = text(rate_limit)
    answer[#answer + 1] = text(circuit)
  else
    local given = 2 + 5 * site
    local stands = text(rate_limit) == ARGV[given] and text(circuit) == ARGV[given + 1]
    if stands then
      set(rate_limit, ARGV[given + 2], ARGV[given + 4])
      set(circuit, ARGV[given + 3], ARGV[given + 4])
    end
    answer[#answer + 1] = stands and '1' or '0'
  end
end
return answer
