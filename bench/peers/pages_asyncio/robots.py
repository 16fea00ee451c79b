"""robots.txt: its text in Redis for a day, its rules in memory."""

import asyncio
import logging
import time
from urllib.parse import urlsplit
from urllib.robotparser import RobotFileParser

import httpx
from redis.asyncio import Redis

log = logging.getLogger(__name__)


class RobotsChecker:
    """Says whether a URL may be fetched."""

    def __init__(self, redis: Redis, client: httpx.AsyncClient, user_agent: str, ttl_seconds: int) -> None:
        self._redis = redis
        self._client = client
        self._user_agent = user_agent
        self._ttl = ttl_seconds
        self._rules: dict[str, tuple[float, RobotFileParser]] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def is_allowed(self, url: str) -> bool:
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        rules = self._fresh(origin)
        if rules is None:
            # One lookup a site, however many of its URLs wait for it.
            async with self._locks.setdefault(origin, asyncio.Lock()):
                rules = self._fresh(origin)
                if rules is None:
                    rules = parse(await self._text(origin, parts.netloc))
                    self._rules[origin] = (time.monotonic() + self._ttl, rules)
        return rules.can_fetch(self._user_agent, url)

    def _fresh(self, origin: str) -> RobotFileParser | None:
        until, rules = self._rules.get(origin, (0.0, None))
        return rules if time.monotonic() < until else None

    async def _text(self, origin: str, domain: str) -> str:
        key = f"robots:{domain}"
        cached = await self._redis.get(key)
        if cached is not None:
            return cached
        text = await self._fetch(f"{origin}/robots.txt")
        await self._redis.set(key, text, ex=self._ttl)
        return text

    async def _fetch(self, url: str) -> str:
        try:
            response = await self._client.get(url)
        except httpx.HTTPError as error:
            log.warning("%s can't be read, so all is allowed: %s", url, error)
            return ""
        return response.text if response.status_code == 200 else ""


def parse(text: str) -> RobotFileParser:
    rules = RobotFileParser()
    rules.parse(text.splitlines())
    return rules
