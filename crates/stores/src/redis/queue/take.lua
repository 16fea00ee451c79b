-- Files what was just moved, closes sites, and hands out what is due.
--
-- Asked: epoch, filings, closed (pairs of site and span), most, most_per_site.
-- Gives: the time; whether the epoch lives; when something is due, where nothing was given; whether nothing
-- is left at all; the leases.
file(asked.filings)

-- The last word on a site holds, as long as something waits there.
for _, closing in ipairs(asked.closed) do
  local site, span = closing[1], closing[2]
  if redis.call('ZSCORE', SITES, site) then
    redis.call('HSET', CLOSED, site, time_in(span))
    reopen(site)
  end
end

local leases = {}

local function lease(place)
  local id = id_of(place)
  local job = read(id)
  leave_place(place, id, job)
  redis.call('ZADD', LEASED, asked.epoch, id)
  count('in_flight', 1)
  leases[#leases + 1] = {
    id, job.url, job.site, job.accepted, job.interruptions or 0, job.deadline or false, job.extras or false,
    { job.url_failures or 0, job.site_failures or 0, job.paced or 0, job.first_site_failure or false },
  }
end

local living = lives(asked.epoch)
if living then
  -- What nobody waits for any more goes, however long its site is closed.
  for _, place in ipairs(redis.call('ZRANGEBYSCORE', DEADLINES, '-inf', now, 'LIMIT', 0, asked.most)) do
    lease(place)
    reopen(site_of(place))
  end
  -- Each site that is due gives one at least, so that no more sites are needed than jobs.
  local left = asked.most - #leases
  for _, site in ipairs(redis.call('ZRANGEBYSCORE', SITES, '-inf', now, 'LIMIT', 0, left)) do
    local most = math.min(asked.most_per_site, asked.most - #leases)
    local from, to = '[' .. site .. '\0', '(' .. site .. '\0' .. digits(now + 1)
    for _, place in ipairs(redis.call('ZRANGEBYLEX', PARKED, from, to, 'LIMIT', 0, most)) do
      lease(place)
    end
    reopen(site)
  end
end
enter()

local next_due
for _, first in ipairs({
  redis.call('ZRANGE', SITES, 0, 0, 'WITHSCORES')[2] or false,
  redis.call('ZRANGE', DEADLINES, 0, 0, 'WITHSCORES')[2] or false,
}) do
  local due = tonumber(first)
  if due and (not next_due or due < next_due) then
    next_due = due
  end
end
local is_over = redis.call('LLEN', LIST) == 0 and redis.call('HLEN', JOBS) == redis.call('ZCARD', DEAD)
return { now, living and 1 or 0, next_due or false, is_over and 1 or 0, leases }
