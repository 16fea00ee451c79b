-- How many jobs wait for each of these sites, in order: their places are next to each other.
local counts = {}
for i, site in ipairs(asked.sites) do
  counts[i] = redis.call('ZLEXCOUNT', PARKED, '[' .. site .. '\0', '(' .. site .. '\1')
end
return counts
