"""One URL through the pipeline: robots.txt, rate limit, GET, cache, event."""

import asyncio
import hashlib
import logging
from datetime import UTC, datetime
from urllib.parse import urlsplit

import httpx
from aiokafka import AIOKafkaProducer
from redis.asyncio import Redis

from config import PageFetcherConfig
from models import SiteWideFailure, UrlSpecificFailure, WebpageEvent
from rate_limiter import RateLimiter
from robots import RobotsChecker

log = logging.getLogger(__name__)

SITE_WIDE = {502, 503, 504}


class Fetcher:
    """Fetches pages, caches them and tells of them."""

    def __init__(
        self,
        config: PageFetcherConfig,
        client: httpx.AsyncClient,
        redis: Redis,
        producer: AIOKafkaProducer,
        robots: RobotsChecker,
        limiter: RateLimiter,
    ) -> None:
        self._config = config
        self._client = client
        self._redis = redis
        self._producer = producer
        self._robots = robots
        self._limiter = limiter

    async def process(self, url: str) -> WebpageEvent | None:
        """The event, or nothing where robots.txt disallows the URL; failures are exceptions."""
        if not urlsplit(url).netloc:
            raise UrlSpecificFailure("not a URL")
        if not await self._robots.is_allowed(url):
            log.info("robots.txt disallows %s", url)
            return None
        response = await self._get_with_retries(url)
        return await self._store(url, response)

    async def probe(self, domain: str) -> bool:
        try:
            response = await self._client.head(f"http://{domain}/")
        except httpx.HTTPError:
            return False
        return response.status_code < 500

    async def _get_with_retries(self, url: str) -> httpx.Response:
        for attempt in range(1, self._config.max_retries + 1):
            try:
                return await self._get(url)
            except UrlSpecificFailure as failure:
                if not failure.is_retriable or attempt == self._config.max_retries:
                    raise
            await asyncio.sleep(self._config.retry_backoff_base_seconds * 2 ** (attempt - 1))
        raise UrlSpecificFailure("no attempt was allowed")

    async def _get(self, url: str) -> httpx.Response:
        domain = urlsplit(url).netloc
        while True:
            await self._limiter.acquire(domain)
            try:
                response = await self._client.get(url)
            except (httpx.TooManyRedirects, httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.DecodingError) as error:
                raise UrlSpecificFailure(repr(error)) from error
            except httpx.TransportError as error:
                raise SiteWideFailure(domain, repr(error)) from error
            status = response.status_code
            if status == 429:
                await asyncio.sleep(retry_after(response))
            elif status in SITE_WIDE:
                raise SiteWideFailure(domain, f"status {status}")
            elif status >= 400:
                raise UrlSpecificFailure(f"status {status}", is_retriable=status >= 500)
            else:
                return response

    async def _store(self, url: str, response: httpx.Response) -> WebpageEvent:
        content = response.content
        key = hashlib.sha256(url.encode())
        event = WebpageEvent(
            url=url,
            cache_key=f"webpage:{key.hexdigest()}",
            status_code=response.status_code,
            content_type=response.headers.get("content-type"),
            content_length=len(content),
            content_hash=hashlib.sha256(content).hexdigest(),
            fetched_at=datetime.now(UTC),
        )
        await self._redis.set(event.cache_key, content, ex=self._config.cache_ttl_seconds)
        value = event.model_dump_json().encode()
        await self._producer.send_and_wait(self._config.webpage_log_topic, value, key=key.digest())
        return event


def retry_after(response: httpx.Response) -> float:
    value = response.headers.get("retry-after", "")
    return float(value) if value.isdigit() else 1.0
