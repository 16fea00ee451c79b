-- Makes our index of dead letters say of some URLs what their list says. Other clients change that list.
--
-- Asked: sites (of each URL), adopts, reason (for what is adopted). ARGV[3] and on: URLs, each once.
local urls = { unpack(ARGV, 3) }
local listed = count_listed(urls)

local function adopt(url, site)
  local id = string.format('%.0f', redis.call('HINCRBY', LEDGER, 'last_id', 1))
  write(id, { url = url, site = site, accepted = now, reason = asked.reason })
  redis.call('ZADD', DEAD, 0, grave(url, id))
  count('accepted', 1)
  count('dead', 1)
end

for n, url in ipairs(urls) do
  local ids = letters_of(url)
  -- Equal entries can't be told apart; whoever pops takes the oldest first.
  for gone = 1, #ids - listed[url] do
    drop_letter(ids[gone], url)
  end
  if asked.adopts then
    for _ = #ids + 1, listed[url] do
      adopt(url, asked.sites[n])
    end
  end
  if listed[url] == 0 then
    redis.call('HDEL', DETAILS, url)
  end
end
enter()
return redis.status_reply('OK')
