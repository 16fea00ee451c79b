-- Moves heads of the list into a place of ours, each under an id of its own. They have no site yet.
--
-- Asked: most. Gives: id and URL of each.
local urls = redis.call('LRANGE', LIST, 0, asked.most - 1)
local moved = {}
if #urls > 0 then
  redis.call('LTRIM', LIST, #urls, -1)
  local last = redis.call('HINCRBY', LEDGER, 'last_id', #urls)
  for n, url in ipairs(urls) do
    local id = string.format('%.0f', last - #urls + n)
    write(id, { url = url, accepted = now })
    redis.call('ZADD', UNFILED, id, id)
    moved[n] = { id, url }
  end
  count('accepted', #urls)
  count('queued', #urls)
end
enter()
return moved
