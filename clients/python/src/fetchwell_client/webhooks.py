"""Verifies that a webhook comes from your Fetchwell (Standard Webhooks, version 1), and parses it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .errors import FetchwellError
from .models import Batch, Message, read, read_batch, read_time

TOLERANCE_S = 300
"""A webhook with an older or newer timestamp may be a replay attack."""


class BadSignature(FetchwellError):
    """The webhook was not signed with this secret, or too long ago."""


@dataclass(frozen=True, slots=True)
class WebhookEvent:
    """A webhook with a valid signature."""

    id: str
    """The `webhook-id`. It is the same in every attempt and replay: ignore an event that you have already processed."""
    type: str
    """`fetch.completed`, `fetch.failed` or `batch.completed`."""
    timestamp: datetime
    """When the result was stored, or when the batch ended."""
    data: Message | Batch | Mapping[str, Any]
    """A `Message` with its result, or a `Batch`; plain JSON for types that this version does not know."""


def verify_webhook(secret: str, headers: Mapping[str, str], body: bytes, *, now_s: float | None = None) -> WebhookEvent:
    """Raises `BadSignature` unless the body was signed with the secret (`whsec_…`) within the last five minutes. While
    a secret is being rotated, a webhook has two signatures, and either secret verifies it."""
    lower = {name.lower(): value for name, value in headers.items()}
    try:
        identity, timestamp = lower["webhook-id"], lower["webhook-timestamp"]
        signatures = lower["webhook-signature"].split(" ")
        age_s = (time.time() if now_s is None else now_s) - int(timestamp)
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (KeyError, ValueError) as error:
        raise BadSignature(f"a header is missing or invalid: {error}") from error
    if abs(age_s) > TOLERANCE_S:
        raise BadSignature(f"it was signed {age_s:.0f} s ago")
    content = f"{identity}.{timestamp}.".encode() + body
    expected = b"v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest())
    # As bytes, because text that is not ASCII cannot be compared in constant time.
    if not any(hmac.compare_digest(expected, signature.encode("utf-8", "replace")) for signature in signatures):
        raise BadSignature("the signature does not match the body")
    return read_event(identity, body)


def read_event(identity: str, body: bytes) -> WebhookEvent:
    try:
        members = json.loads(body)
        kind, data = members["type"], members["data"]
        timestamp = read_time(members["timestamp"])
    except (ValueError, KeyError, TypeError) as error:
        raise FetchwellError(f"the webhook {identity} has a valid signature, but no event: {error!r}") from error
    known: Message | Batch | Mapping[str, Any] = data
    if kind in ("fetch.completed", "fetch.failed"):
        known = read(Message, data)
    elif kind == "batch.completed":
        known = read_batch(data)
    return WebhookEvent(identity, kind, timestamp, known)
