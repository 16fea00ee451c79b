-- Notes that leases of an epoch are about to be fetched.
--
-- Asked: epoch, ids.
for _, id in ipairs(asked.ids) do
  if is_held(id, asked.epoch) then
    local job = read(id)
    job.started = true
    write(id, job)
    redis.call('ZADD', UNDER_WAY, asked.epoch, id)
  end
end
enter()
return redis.status_reply('OK')
