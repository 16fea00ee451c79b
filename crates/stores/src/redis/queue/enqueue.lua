-- Puts jobs in, each unless its key is there already.
--
-- Asked: jobs: url, site, due and deadline (spans), key, extras. Gives: how many went in.
local accepted = 0
for _, job in ipairs(asked.jobs) do
  if not job.key or redis.call('HEXISTS', KEYED, job.key) == 0 then
    local id = string.format('%.0f', redis.call('HINCRBY', LEDGER, 'last_id', 1))
    if job.key then
      redis.call('HSET', KEYED, job.key, id)
    end
    local due = time_in(job.due)
    job.due, job.accepted, job.deadline = nil, now, job.deadline and time_in(job.deadline)
    wait(id, job, due)
    accepted = accepted + 1
  end
end
count('accepted', accepted)
enter()
return accepted
