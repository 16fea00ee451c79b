-- Takes dead letters off: to be tried anew, or for good. One that is dead no more is left alone.
--
-- Asked: ids, retry. Gives: how many were taken off.
local function has_twin(url)
  local twins = redis.call('ZRANGEBYLEX', DEAD, '[' .. url .. '\0', '(' .. url .. '\0:', 'LIMIT', 0, 1)
  return #twins > 0 and #twins[1] == #url + 17
end

local revised = 0
for _, id in ipairs(asked.ids) do
  local job = find(id)
  if job and job.reason then
    redis.call('ZREM', DEAD, job.url .. '\0' .. digits(id))
    redis.call('LREM', DEAD_LIST, 1, job.url)
    if not has_twin(job.url) then
      redis.call('HDEL', DETAILS, job.url)
    end
    count('dead', -1)
    if asked.retry then
      -- With a clean record, but for when it was accepted.
      wait(id, {
        url = job.url, site = job.site, accepted = job.accepted, key = job.key, deadline = job.deadline,
        extras = job.extras,
      }, now)
    else
      count('skipped', 1)
      forget(id, job)
    end
    revised = revised + 1
  end
end
enter()
return revised
