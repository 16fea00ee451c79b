-- One step of many processes' politeness: compares and sets, and tells what stands, by the server's time.
--
-- KEYS: the run, the names of all sites, of notable ones, and when each is forgotten; then three keys a
-- site (rate_limit:, circuit:, fetchwell:site:).
-- ARGV: the server's run id, then either nothing more (it only reads), or eight values a site: its three
-- texts as they were read, the three as they shall be ('' stands for none), milliseconds to keep them (0: for ever), and
-- 1 or 0 for whether it is notable.
-- Gives: the time, until when the past may be forgotten (both in microseconds), then for each site
-- its texts when it only reads, or 1 or 0 when it was to set.
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000000 + time[2])

-- A server that started anew, or lost its keys, may have forgotten what happened until now.
local run = redis.call('HMGET', KEYS[1], 'id', 'lost_until')
if run[1] ~= ARGV[1] then
  run[2] = now
  redis.call('HSET', KEYS[1], 'id', ARGV[1], 'lost_until', now)
end

-- A key of somebody else's making counts as none: one of another type, or, where others may write, one that
-- is not ASCII as ours are.
local function text(key, is_shared)
  local value = redis.pcall('GET', key)
  local is_text = type(value) == 'string' and not (is_shared and value:find('[\128-\255]'))
  return is_text and value or ''
end

local function set(key, value, keep_ms)
  if value == '' then
    redis.call('DEL', key)
  else
    redis.call('SET', key, value)
    if keep_ms > 0 then
      redis.call('PEXPIRE', key, keep_ms)
    end
  end
end

-- The names stand in sorted sets, so that sites can be listed without a look at every key there is.
local function note(name, keep_ms, notable)
  redis.call('ZADD', KEYS[2], 0, name)
  if notable == '1' then
    redis.call('ZADD', KEYS[3], 0, name)
  else
    redis.call('ZREM', KEYS[3], name)
  end
  if keep_ms > 0 then
    redis.call('ZADD', KEYS[4], math.floor(now / 1000) + keep_ms, name)
  else
    redis.call('ZREM', KEYS[4], name)
  end
end

local answer = { now, run[2] }
for site = 0, (#KEYS - 4) / 3 - 1 do
  local first_key, given = 5 + 3 * site, 2 + 8 * site
  if #ARGV == 1 then
    for i = 0, 2 do
      answer[#answer + 1] = text(KEYS[first_key + i], i < 2)
    end
  else
    local stands = true
    for i = 0, 2 do
      stands = stands and text(KEYS[first_key + i], i < 2) == ARGV[given + i]
    end
    if stands then
      local keep_ms = tonumber(ARGV[given + 6])
      for i = 0, 2 do
        set(KEYS[first_key + i], ARGV[given + 3 + i], keep_ms)
      end
      note(string.sub(KEYS[first_key], #'rate_limit:' + 1), keep_ms, ARGV[given + 7])
    end
    answer[#answer + 1] = stands and '1' or '0'
  end
end
return answer
