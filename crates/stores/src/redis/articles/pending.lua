-- Which links are still to be fetched.
--
-- KEYS: for each link its article, and the failures of its site. ARGV: when the run began, in microseconds; the
-- links. Gives: 1 for each that is to be fetched, else 0.
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

-- An article that is there is not fetched again, whatever became of the note about it. It is noted anew.
local function has_article(uid, article)
  local is_there = redis.call('HGET', article, 'status') == 'success'
  if is_there then
    note_attempt(uid)
  end
  return is_there
end

local pending = {}
for n = 1, #ARGV - 3 do
  local uid, article, site_failures = ARGV[n + 3], KEYS[2 * n + 1], KEYS[2 * n + 2]
  local failed_at = redis.call('HGET', site_failures, 'at')
  local failed_in_run = failed_at and tonumber(failed_at) >= run
  local is_over = was_attempted(uid) or has_article(uid, article) or failed_in_run
  pending[n] = is_over and 0 or 1
end
return pending
