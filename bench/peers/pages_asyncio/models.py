"""What goes out, and what can go wrong."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import BaseModel


class WebpageEvent(BaseModel):
    """Told to Kafka of each page."""

    type: Literal["webpage_fetched"] = "webpage_fetched"
    url: str
    cache_key: str
    status_code: int
    content_type: str | None
    content_length: int
    content_hash: str
    fetched_at: datetime


@dataclass
class SiteWideFailure(Exception):
    """The site appears down: the URL goes back to the queue."""

    domain: str
    reason: str


@dataclass
class UrlSpecificFailure(Exception):
    """The URL is to blame: it becomes a dead letter."""

    reason: str
    is_retriable: bool = False
