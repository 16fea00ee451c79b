-- What every script of the queue begins with: its keys by name, the time, and the moves that they share.
--
-- KEYS: the same for all scripts, in the order of names.rs.
-- ARGV: the time in microseconds, or '' for the server's own; what is asked for, as JSON; then what may be
-- any bytes. Times in the JSON are spans from now, in microseconds: whoever asks has another clock.
--
-- A script that fails half-way is not undone: what can fail comes before the first write.
local LIST, UNFILED, JOBS, PARKED, DELAYED, SITES, CLOSED, DEADLINES, LEASED, INSTANCES, KEYED, DEAD, LEDGER,
  ROUNDS, UNDER_WAY, ACCEPTED, SIZE, DEAD_LIST, DETAILS = unpack(KEYS)
local asked = cjson.decode(ARGV[2])

local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end

-- Numbers are doubles here: they are whole up to this one, which has sixteen digits.
local FAR_FUTURE = 9007199254740991

local function time_in(span)
  return math.max(0, math.min(now + span, FAR_FUTURE))
end

local function digits(number)
  return string.format('%016.0f', number)
end

-- The ledger changes once, at the end of the script.
local change = {}

local function count(standing, by)
  change[standing] = (change[standing] or 0) + by
end

-- How many URLs wait anywhere: on the list, under their sites, and with instances that have not begun to fetch
-- them. It is counted from the things themselves, since producers change the list without telling anybody.
local function waiting()
  local elsewhere = redis.call('HLEN', JOBS) - redis.call('ZCARD', DEAD) - redis.call('ZCARD', UNDER_WAY)
  return redis.call('LLEN', LIST) + math.max(0, elsewhere)
end

-- Every script that may have moved something ends with this. Nothing is written that stands there already: a
-- write may cost the server a sync.
local function enter()
  for standing, by in pairs(change) do
    if by ~= 0 then
      redis.call('HINCRBY', LEDGER, standing, by)
    end
  end
  local size = string.format('%.0f', waiting())
  if redis.call('GET', SIZE) ~= size then
    redis.call('SET', SIZE, size)
  end
end

local function find(id)
  local packed = redis.call('HGET', JOBS, id)
  return packed and cmsgpack.unpack(packed)
end

-- A job that must be there.
local function read(id)
  return find(id) or error(JOBS .. ' has lost job ' .. id .. '; was it evicted, or deleted by hand?')
end

local function write(id, job)
  redis.call('HSET', JOBS, id, cmsgpack.pack(job))
end

local function forget(id, job)
  redis.call('HDEL', JOBS, id)
  redis.call('ZREM', ACCEPTED, id)
  if job.key then
    redis.call('HDEL', KEYED, job.key)
  end
end

-- A place in PARKED: all have the same score, so that they stand by site, then by due time, then by id.
local function place(site, due, id)
  return site .. '\0' .. digits(due) .. digits(id)
end

local function site_of(place)
  return place:sub(1, -34)
end

local function due_of(place)
  return tonumber(place:sub(-32, -17))
end

local function id_of(place)
  return place:sub(-16):match('0*(%d+)')
end

local function closed_until(site)
  return tonumber(redis.call('HGET', CLOSED, site) or 0)
end

-- Sites that were opened by this script, and since when they give: they need not be opened for each job.
local opened = {}

-- Says when a site gives next, by what waits there; one where nothing waits is forgotten.
local function reopen(site)
  opened[site] = nil
  local first = redis.call('ZRANGEBYLEX', PARKED, '[' .. site .. '\0', '(' .. site .. '\1', 'LIMIT', 0, 1)[1]
  if first then
    redis.call('ZADD', SITES, math.max(due_of(first), closed_until(site)), site)
  else
    redis.call('ZREM', SITES, site)
    redis.call('HDEL', CLOSED, site)
  end
end

-- A site with something waiting gives no later than that is due, unless it is closed.
local function open(site, due)
  if not opened[site] or due < opened[site] then
    local opens, opens_now = math.max(due, closed_until(site)), redis.call('ZSCORE', SITES, site)
    if not opens_now or opens < tonumber(opens_now) then
      redis.call('ZADD', SITES, opens, site)
    end
    opened[site] = due
  end
end

-- Lets a job wait under its site until it is due.
local function wait(id, job, due)
  job.started = nil
  write(id, job)
  redis.call('ZADD', ACCEPTED, job.accepted, id)
  local place = place(job.site, due, id)
  redis.call('ZADD', PARKED, 0, place)
  if due > now then
    redis.call('SADD', DELAYED, id)
  end
  count(due > now and 'delayed' or 'queued', 1)
  if job.deadline then
    redis.call('ZADD', DEADLINES, job.deadline, place)
  end
  open(job.site, due)
end

-- A job leaves its place; its site is to be reopened.
local function leave_place(place, id, job)
  redis.call('ZREM', PARKED, place)
  count(redis.call('SREM', DELAYED, id) == 1 and 'delayed' or 'queued', -1)
  if job.deadline then
    redis.call('ZREM', DEADLINES, place)
  end
end

-- Files what was moved off the list under its site, unless somebody has done it: pairs of id and site.
local function file(filings)
  for _, filing in ipairs(filings) do
    local id, site = filing[1], filing[2]
    if redis.call('ZREM', UNFILED, id) == 1 then
      local job = read(id)
      job.site = site
      count('queued', -1)
      wait(id, job, job.accepted)
    end
  end
end

local function lives(epoch)
  return tonumber(redis.call('ZSCORE', INSTANCES, epoch) or 0) > now
end

local function is_held(id, epoch)
  local holder = redis.call('ZSCORE', LEASED, id)
  return holder and tonumber(holder) == epoch
end

-- A lease ends, whatever becomes of its job.
local function unlease(id)
  redis.call('ZREM', LEASED, id)
  redis.call('ZREM', UNDER_WAY, id)
  count('in_flight', -1)
end

-- What an epoch holds waits again, but for what is known to be in good hands. Returns how many, `most` at most.
local function orphan(epoch, most, interrupted, known)
  local orphans = 0
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', LEASED, epoch, epoch)) do
    if orphans == most then
      break
    end
    if not known[id] then
      local job = read(id)
      if interrupted and job.started then
        job.interruptions = (job.interruptions or 0) + 1
      end
      unlease(id)
      wait(id, job, now)
      orphans = orphans + 1
    end
  end
  return orphans
end

-- What dead instances held waits again. Returns how many jobs, `most` at most.
local function rescue(most)
  local left = most
  for _, dead in ipairs(redis.call('ZRANGEBYSCORE', INSTANCES, '-inf', now)) do
    left = left - orphan(dead, left, true, {})
    if left == 0 then
      break
    end
    redis.call('ZREM', INSTANCES, dead)
  end
  return most - left
end

-- The place of a dead letter in DEAD: they stand by URL, then by id.
local function grave(url, id)
  return url .. '\0' .. digits(id)
end

-- The ids of a URL's dead letters by the index, the oldest first.
local function letters_of(url)
  local ids = {}
  for _, place in ipairs(redis.call('ZRANGEBYLEX', DEAD, '[' .. url .. '\0', '(' .. url .. '\0:')) do
    -- A longer URL may begin like this place.
    if #place == #url + 17 then
      ids[#ids + 1] = id_of(place)
    end
  end
  return ids
end

-- The list of dead letters says what one is, since other clients change it. DEAD and DETAILS are our index of it, and
-- may be behind: this is whether entries are sure to be gone that the index still has.
local function is_behind()
  return redis.call('LLEN', DEAD_LIST) < redis.call('ZCARD', DEAD)
end

-- How often each of these URLs stands on the list of dead letters. It reads the whole list.
local function count_listed(urls)
  local listed, from, page = {}, 0, 1000
  for _, url in ipairs(urls) do
    listed[url] = 0
  end
  repeat
    local entries = redis.call('LRANGE', DEAD_LIST, from, from + page - 1)
    for _, url in ipairs(entries) do
      if listed[url] then
        listed[url] = listed[url] + 1
      end
    end
    from = from + page
  until #entries < page
  return listed
end

-- A dead letter is gone from the list for good.
local function drop_letter(id, url)
  redis.call('ZREM', DEAD, grave(url, id))
  local job = find(id)
  if job then
    forget(id, job)
  end
  count('dead', -1)
  count('skipped', 1)
end

