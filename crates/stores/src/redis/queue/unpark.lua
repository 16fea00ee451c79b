-- What waits goes back to the end of the list, from where it has to be accepted anew.
--
-- Asked: most, only_when_alone. ARGV[3]: from where on. Gives: from where to go on, '' at the end; how many
-- went back.
--
-- A list holds URLs and nothing else: what has more to it (a key, a deadline, data of a door) stays.
local function fits_the_list(job)
  return not (job.key or job.deadline or job.extras)
end

local is_alone = redis.call('ZCOUNT', INSTANCES, '(' .. digits(now), '+inf') == 0
if asked.only_when_alone and not is_alone then
  return { '', 0 }
end
local places = redis.call('ZRANGEBYLEX', PARKED, ARGV[3], '+', 'LIMIT', 0, asked.most)
local sites, unparked = {}, 0
for _, place in ipairs(places) do
  local id = id_of(place)
  local job = read(id)
  if fits_the_list(job) then
    leave_place(place, id, job)
    forget(id, job)
    redis.call('RPUSH', LIST, job.url)
    sites[job.site] = true
    unparked = unparked + 1
  end
end
for site in pairs(sites) do
  reopen(site)
end
count('accepted', -unparked)
enter()
return { #places == asked.most and '(' .. places[#places] or '', unparked }
