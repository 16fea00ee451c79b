-- Which links are still to be fetched.
--
-- KEYS: for each link the failures of its site. ARGV: when the run began, in microseconds; the links.
-- Gives: 1 for each that is to be fetched, else 0.
local run = tonumber(ARGV[3])

local function was_attempted(uid)
  if redis.call('SISMEMBER', ATTEMPTED, uid) == 0 then
    return false
  end
  local at = redis.call('ZSCORE', ATTEMPTED_AT, uid)
  if not at then
    -- Somebody else noted it, without a time: it counts from now on.
    time_attempted(uid)
    return true
  end
  return tonumber(at) > now_s - ATTEMPTED_FOR
end

local pending = {}
for n = 1, #ARGV - 3 do
  local failed_at = redis.call('HGET', KEYS[n + 2], 'at')
  local failed_in_run = failed_at and tonumber(failed_at) >= run
  pending[n] = (was_attempted(ARGV[n + 3]) or failed_in_run) and 0 or 1
end
return pending
