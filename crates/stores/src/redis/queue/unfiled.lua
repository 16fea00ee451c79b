-- What was moved off the list and not filed: whoever moved it is about to, or is gone.
--
-- Asked: most. Gives: id and URL of each.
local unfiled = {}
for n, id in ipairs(redis.call('ZRANGE', UNFILED, 0, asked.most - 1)) do
  unfiled[n] = { id, read(id).url }
end
return unfiled
