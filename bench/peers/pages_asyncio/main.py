"""The Page Fetcher's design as a plain asyncio program: Redis list in, Redis cache and Kafka out.

Settings are in config.py. It ends on SIGTERM or Ctrl-C, or by itself with PAGE_FETCHER_EXIT_WHEN_IDLE=1.
"""

import asyncio
import logging
import signal
import sys

import httpx
from aiokafka import AIOKafkaProducer
from redis.asyncio import BlockingConnectionPool, Redis

from circuit_breaker import CircuitBreaker
from config import PageFetcherConfig
from fetcher import Fetcher
from models import SiteWideFailure, UrlSpecificFailure
from rate_limiter import RateLimiter
from robots import RobotsChecker

log = logging.getLogger(__name__)


class Worker:
    """Takes URLs from the queue, one after the other; several run side by side."""

    def __init__(self, config: PageFetcherConfig, redis: Redis, fetcher: Fetcher, breaker: CircuitBreaker) -> None:
        self._config = config
        self._redis = redis
        self._fetcher = fetcher
        self._breaker = breaker
        self.counts = {"fetched": 0, "skipped": 0, "requeued": 0, "dead": 0}

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            await self._breaker.wait_if_open(stop)
            if stop.is_set():
                return
            taken = await self._redis.blpop([self._config.input_queue], timeout=self._config.poll_timeout_seconds)
            if taken is not None:
                await self._process(taken[1])
            elif self._config.exit_when_idle:
                return

    async def _process(self, url: str) -> None:
        try:
            event = await self._fetcher.process(url)
        except SiteWideFailure as failure:
            await self._redis.rpush(self._config.input_queue, url)
            self._breaker.record_site_wide_failure(failure.domain, self._fetcher.probe)
            self.counts["requeued"] += 1
        except UrlSpecificFailure as failure:
            log.info("%s failed: %s", url, failure.reason)
            await self._redis.rpush(self._config.dlq_queue, url)
            self.counts["dead"] += 1
        else:
            self._breaker.record_success()
            self.counts["skipped" if event is None else "fetched"] += 1


async def main() -> None:
    config = PageFetcherConfig()
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    # A task that waits for a URL has a connection to itself.
    pool = BlockingConnectionPool.from_url(
        config.redis_url, max_connections=config.concurrency + 8, decode_responses=True
    )
    redis = Redis(connection_pool=pool)
    producer = AIOKafkaProducer(bootstrap_servers=config.kafka_bootstrap_servers, acks="all", enable_idempotence=True)
    client = httpx.AsyncClient(
        headers={"User-Agent": config.user_agent},
        timeout=config.request_timeout_seconds,
        follow_redirects=True,
        max_redirects=config.max_redirects,
        limits=httpx.Limits(max_connections=config.concurrency, max_keepalive_connections=config.concurrency),
    )
    await producer.start()
    try:
        async with client, redis:
            await work(config, stop, redis, client, producer)
    finally:
        await producer.stop()


async def work(
    config: PageFetcherConfig, stop: asyncio.Event, redis: Redis, client: httpx.AsyncClient, producer: AIOKafkaProducer
) -> None:
    robots = RobotsChecker(redis, client, config.user_agent, config.robots_txt_cache_ttl_seconds)
    limiter = RateLimiter(redis, config.rate_limit_per_second)
    fetcher = Fetcher(config, client, redis, producer, robots, limiter)
    breaker = CircuitBreaker(
        config.circuit_breaker_failure_threshold,
        config.circuit_breaker_initial_backoff_seconds,
        config.circuit_breaker_max_backoff_seconds,
        config.circuit_breaker_backoff_multiplier,
    )
    worker = Worker(config, redis, fetcher, breaker)
    async with asyncio.TaskGroup() as tasks:
        for _ in range(config.concurrency):
            tasks.create_task(worker.run(stop))
    print(worker.counts)


if __name__ == "__main__":
    asyncio.run(main())
