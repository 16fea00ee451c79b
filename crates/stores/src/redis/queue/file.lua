-- Files under their sites what was moved off the list.
--
-- Asked: filings, pairs of id and site.
file(asked.filings)
enter()
return redis.status_reply('OK')
