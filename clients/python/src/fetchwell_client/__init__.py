"""A client of `fetchwell serve`: send pages to be fetched, and read what came back.

    from fetchwell_client import Fetchwell

    with Fetchwell("http://127.0.0.1:8080", token) as fetchwell:
        message = fetchwell.fetch("https://example.com/", retailer="admhr", wait=30)
"""

from .asynchronous import AsyncFetchwell
from .errors import CursorGone, FetchwellError, Problem, Unreachable
from .models import (
    Batch,
    BatchCompletedEvent,
    BatchCounts,
    BatchList,
    BatchPage,
    BatchReceipt,
    Body,
    BodyInfo,
    DeliveryPage,
    Fetch,
    Message,
    NewSecret,
    OutboxMessage,
    Page,
    Receipt,
    Redirect,
    Replay,
    ResultEvent,
    SentMessage,
    SentPage,
    Skipped,
    StreamEvent,
    WebhookAttempt,
    WebhookDelivery,
)
from .synchronous import Fetchwell
from .version import __version__
from .webhooks import BadSignature, WebhookEvent, verify_webhook

__all__ = [
    "AsyncFetchwell",
    "BadSignature",
    "Batch",
    "BatchCompletedEvent",
    "BatchCounts",
    "BatchList",
    "BatchPage",
    "BatchReceipt",
    "Body",
    "BodyInfo",
    "CursorGone",
    "DeliveryPage",
    "Fetch",
    "Fetchwell",
    "FetchwellError",
    "Message",
    "NewSecret",
    "OutboxMessage",
    "Page",
    "Problem",
    "Receipt",
    "Redirect",
    "Replay",
    "ResultEvent",
    "SentMessage",
    "SentPage",
    "Skipped",
    "StreamEvent",
    "Unreachable",
    "WebhookAttempt",
    "WebhookDelivery",
    "WebhookEvent",
    "__version__",
    "verify_webhook",
]
