"""Follows the events of `fetchwell pages`: reads each page from the cache, checks it, and prints a line for it.

    pip install confluent-kafka redis pydantic
    python consume_pages.py [GROUP [MOST]]

GROUP is the consumer group (`consume-pages`); it goes on where it stopped. After MOST pages it ends. The servers are
those of the Page Fetcher, under the same names: PAGE_FETCHER_REDIS_URL, PAGE_FETCHER_KAFKA_BOOTSTRAP_SERVERS,
PAGE_FETCHER_WEBPAGE_LOG_TOPIC.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections import OrderedDict
from collections.abc import Iterator
from datetime import datetime
from typing import Literal

from confluent_kafka import Consumer, KafkaException, Message
from pydantic import BaseModel, ConfigDict
from redis import Redis

REDIS_URL = os.environ.get("PAGE_FETCHER_REDIS_URL", "redis://localhost:6379")
SERVERS = os.environ.get("PAGE_FETCHER_KAFKA_BOOTSTRAP_SERVERS", "localhost:9092")
TOPIC = os.environ.get("PAGE_FETCHER_WEBPAGE_LOG_TOPIC", "webpage_log")
# An event may come twice, and then it comes soon: so many ids are remembered.
IDS_REMEMBERED = 10_000
POLL_SECONDS = 1.0


class WebpageFetched(BaseModel):
    """An event on the topic: docs/webpage_log.asyncapi.yaml describes it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["webpage_fetched"]
    url: str
    cache_key: str
    status_code: int
    content_type: str | None
    content_length: int
    content_hash: str
    fetched_at: datetime


class Seen:
    """The ids of the last events."""

    def __init__(self) -> None:
        self._ids: OrderedDict[bytes, None] = OrderedDict()

    def is_new(self, event_id: bytes) -> bool:
        if event_id in self._ids:
            return False
        self._ids[event_id] = None
        if len(self._ids) > IDS_REMEMBERED:
            self._ids.popitem(last=False)
        return True


def main() -> None:
    group = sys.argv[1] if len(sys.argv) > 1 else "consume-pages"
    most = int(sys.argv[2]) if len(sys.argv) > 2 else None
    cache = Redis.from_url(REDIS_URL)
    seen, pages = Seen(), 0
    for message in messages(group):
        if not seen.is_new(event_id(message)):
            continue
        event = WebpageFetched.model_validate_json(message.value() or b"")
        print(event.status_code, verdict(event, cache.get(event.cache_key)), event.url, flush=True)
        pages += 1
        if pages == most:
            return


def messages(group: str) -> Iterator[Message]:
    """A message is committed once the next one is asked for: what was not worked through comes again."""
    settings = {"bootstrap.servers": SERVERS, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "enable.auto.offset.store": False})
    consumer.subscribe([TOPIC])
    try:
        while True:
            message = consumer.poll(POLL_SECONDS)
            if message is None:
                continue
            error = message.error()
            if error is not None:
                raise KafkaException(error)
            yield message
            consumer.store_offsets(message)
    finally:
        consumer.close()


def event_id(message: Message) -> bytes:
    headers = dict(message.headers() or [])
    value = headers["id"]
    return value if isinstance(value, bytes) else str(value).encode()


def verdict(event: WebpageFetched, page: object) -> str:
    """What is in the cache: the page that the event tells of, a newer one, or none any more."""
    if not isinstance(page, bytes):
        return "expired"
    if len(page) != event.content_length or hashlib.sha256(page).hexdigest() != event.content_hash:
        return "replaced"
    return f"{len(page)} bytes"


if __name__ == "__main__":
    main()
