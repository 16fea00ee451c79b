-- A page of dead letters, in the order of their URLs.
--
-- Asked: most. ARGV[3], ARGV[4]: from where and up to where. Gives, for each: its place; id, URL, site,
-- reason, and details where there are some.
local letters = {}
for n, place in ipairs(redis.call('ZRANGEBYLEX', DEAD, ARGV[3], ARGV[4], 'LIMIT', 0, asked.most)) do
  local id = id_of(place)
  local job = read(id)
  letters[n] = { place, id, job.url, job.site, job.reason, redis.call('HGET', DETAILS, job.url) }
end
return letters
