-- Ends leases that are still the epoch's.
--
-- Asked: epoch, and the ends: id, how; at (a span) and what changes, for those that wait again; reason and
-- details, for the dead. Gives: 1 for each that was confirmed, 0 for each that was stale.
local function rewrite(job, ending)
  local history = ending.history
  job.url_failures, job.site_failures, job.paced = history.url_failures, history.site_failures, history.paced
  job.first_site_failure = history.first_site_failure and time_in(history.first_site_failure)
  job.extras = ending.extras or job.extras
end

-- Of two dead letters with one URL the last has the word, but for when it began.
local function detail(url, details)
  local is_known, known = pcall(cjson.decode, redis.call('HGET', DETAILS, url) or '')
  local is_letter, letter = pcall(cjson.decode, details)
  if is_known and is_letter and type(known) == 'table' and type(letter) == 'table' and known.first_at then
    letter.first_at = known.first_at
    details = cjson.encode(letter)
  end
  redis.call('HSET', DETAILS, url, details)
end

local ends = {}

function ends.done(id, job)
  count('done', 1)
  forget(id, job)
end

function ends.skipped(id, job)
  count('skipped', 1)
  forget(id, job)
end

function ends.retry(id, job, ending)
  rewrite(job, ending)
  wait(id, job, time_in(ending.at))
end

function ends.hand_back(id, job, ending)
  wait(id, job, time_in(ending.at))
end

function ends.dead(id, job, ending)
  count('dead', 1)
  job.started, job.reason = nil, ending.reason
  write(id, job)
  redis.call('ZREM', ACCEPTED, id)
  if is_behind() and redis.call('HEXISTS', DETAILS, job.url) == 1 and count_listed({ job.url })[job.url] == 0 then
    -- Another client took the letter off the list that these are about.
    redis.call('HDEL', DETAILS, job.url)
  end
  redis.call('ZADD', DEAD, 0, grave(job.url, id))
  redis.call('RPUSH', DEAD_LIST, job.url)
  if ending.details then
    detail(job.url, ending.details)
  end
end

local settled, living = {}, lives(asked.epoch)
for n, ending in ipairs(asked.ends) do
  local job = living and is_held(ending.id, asked.epoch) and read(ending.id)
  if job then
    unlease(ending.id)
    ends[ending.how](ending.id, job, ending)
  end
  settled[n] = job and 1 or 0
end
enter()
return settled
