-- A stretch of our index of dead letters, and one of their list.
--
-- Asked: at (where in the list), most. ARGV[3]: from where in the index. Gives: places, URLs.
return {
  redis.call('ZRANGEBYLEX', DEAD, ARGV[3], '+', 'LIMIT', 0, asked.most),
  redis.call('LRANGE', DEAD_LIST, asked.at, asked.at + asked.most - 1),
}
