"""A token bucket a domain, in Redis, so that several processes share it."""

import asyncio

from redis.asyncio import Redis

# Takes a token, or says after how many seconds there is one. The server's clock counts.
TAKE = """
local now = redis.call('TIME')
now = tonumber(now[1]) + tonumber(now[2]) / 1e6
local rate = tonumber(ARGV[1])
local bucket = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens, at = tonumber(bucket[1] or 1), tonumber(bucket[2] or now)
tokens = math.min(1, tokens + (now - at) * rate)
local wait = 0
if tokens >= 1 then tokens = tokens - 1 else wait = (1 - tokens) / rate end
redis.call('HSET', KEYS[1], 'tokens', tostring(tokens), 'at', tostring(now))
redis.call('EXPIRE', KEYS[1], math.ceil(2 / rate) + 1)
return tostring(wait)
"""


class RateLimiter:
    """Blocks until a request may go; with a rate of 0 it never does, and asks nobody."""

    def __init__(self, redis: Redis, rate_per_second: float) -> None:
        self._rate = rate_per_second
        self._take = redis.register_script(TAKE)

    async def acquire(self, domain: str) -> None:
        while self._rate > 0:
            wait = float(await self._take(keys=[f"rate_limit:{domain}"], args=[self._rate]))
            if wait == 0:
                return
            await asyncio.sleep(wait)
