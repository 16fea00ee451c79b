-- Keeps what a link gave, and all that follows from it.
--
-- KEYS: the index, the failures, the link's article, the failures of its site, the sets of its categories.
-- ARGV: when the run began, in microseconds; the link; when it was fetched; its code, '' for an article;
-- whether the site is to blame, 1 or 0; how long articles and failures of sites are kept, in seconds; the
-- runs after which a site's failure is an attempt; then fields and values.
local INDEX, FAILURES, ARTICLE, SITE_FAILURES = KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local run, uid, fetched_ts, code, is_of_site = tonumber(ARGV[3]), ARGV[4], ARGV[5], ARGV[6], ARGV[7] == '1'
local article_ttl, site_failures_ttl, runs_until_attempted = ARGV[8], ARGV[9], tonumber(ARGV[10])

local function write()
  redis.call('DEL', ARTICLE)
  redis.call('HSET', ARTICLE, unpack(ARGV, 11))
  redis.call('EXPIRE', ARTICLE, article_ttl)
end

-- Runs at one time count as one, and so does what comes again.
local function count_site_failure()
  local known = redis.call('HMGET', SITE_FAILURES, 'runs', 'at')
  local runs, at = tonumber(known[1] or 0), tonumber(known[2] or -1)
  if at < run then
    runs = runs + 1
    redis.call('HSET', SITE_FAILURES, 'runs', runs, 'at', string.format('%.0f', now))
    redis.call('EXPIRE', SITE_FAILURES, site_failures_ttl)
  end
  return runs
end

if code == '' then
  write()
  for n = 7, #KEYS do
    redis.call('SADD', KEYS[n], uid)
    redis.call('EXPIRE', KEYS[n], article_ttl)
  end
  redis.call('ZADD', INDEX, fetched_ts, uid)
  redis.call('DEL', SITE_FAILURES)
  note_attempt(uid)
  return
end

-- Whoever was stopped for long may come late, and an article that is there is better than none.
if redis.call('HGET', ARTICLE, 'status') == 'success' then
  note_attempt(uid)
  return
end
write()
redis.call('ZADD', FAILURES, fetched_ts, uid .. ':' .. code)
if not is_of_site or count_site_failure() >= runs_until_attempted then
  note_attempt(uid)
end
