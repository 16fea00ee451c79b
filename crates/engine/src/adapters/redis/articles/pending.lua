-- Which links are still to be fetched.
--
-- KEYS: for each link its article and the failures of its site. ARGV: when the run began, in microseconds;
-- the links. Gives: 1 for each that is to be fetched, else 0.
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
  local uid, article, failures = ARGV[n + 3], KEYS[2 * n + 1], KEYS[2 * n + 2]
  local failed_at = redis.call('HGET', failures, 'at')
  if was_attempted(uid) then
    pending[n] = 0
  elseif redis.call('HGET', article, 'status') == 'success' then
    note_attempt(uid)
    pending[n] = 0
  else
    pending[n] = (failed_at and tonumber(failed_at) >= run) and 0 or 1
  end
end
return pending
