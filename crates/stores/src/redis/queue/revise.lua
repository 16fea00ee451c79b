-- Takes dead letters off: to be tried anew, or for good. One that is dead no more is left alone, and one that
-- another client took off the list is gone: it is not tried anew.
--
-- Asked: ids, retry. Gives: how many were taken off.
local revised = 0
for _, id in ipairs(asked.ids) do
  local job = find(id)
  if job and job.reason then
    local is_listed = redis.call('LREM', DEAD_LIST, 1, job.url) == 1
    if is_listed then
      revised = revised + 1
    end
    if is_listed and asked.retry then
      redis.call('ZREM', DEAD, grave(job.url, id))
      count('dead', -1)
      -- With a clean record, but for when it was accepted.
      wait(id, {
        url = job.url, site = job.site, accepted = job.accepted, key = job.key, deadline = job.deadline,
        extras = job.extras,
      }, now)
    else
      drop_letter(id, job.url)
    end
    if #letters_of(job.url) == 0 then
      redis.call('HDEL', DETAILS, job.url)
    end
  end
end
enter()
return revised
