"""A client of `fetchwell serve`: send pages to be fetched, and read what came back.

    from fetchwell_client import Fetchwell

    with Fetchwell("http://127.0.0.1:8080", token) as fetchwell:
        message = fetchwell.fetch("https://example.com/", retailer="admhr", wait=30)
"""

from .asynchronous import AsyncFetchwell
from .errors import CursorGone, FetchwellError, Problem, Unreachable
from .models import (
    Batch,
    BatchCounts,
    BatchPage,
    BatchReceipt,
    Fetch,
    Message,
    OutboxMessage,
    Page,
    Receipt,
    Redirect,
    SentMessage,
    SentPage,
    Skipped,
)
from .synchronous import Fetchwell
from .webhooks import BadSignature, verify_webhook

__all__ = [
    "AsyncFetchwell",
    "BadSignature",
    "Batch",
    "BatchCounts",
    "BatchPage",
    "BatchReceipt",
    "CursorGone",
    "Fetch",
    "Fetchwell",
    "FetchwellError",
    "Message",
    "OutboxMessage",
    "Page",
    "Problem",
    "Receipt",
    "Redirect",
    "SentMessage",
    "SentPage",
    "Skipped",
    "Unreachable",
    "verify_webhook",
]
