"""Checks that a webhook comes from your Fetchwell (Standard Webhooks, version 1)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections.abc import Mapping

from .errors import FetchwellError

TOLERANCE_S = 300
"""An older or younger webhook may be somebody's replay."""


class BadSignature(FetchwellError):
    """The webhook is not from whoever has the secret, or too old."""


def verify_webhook(secret: str, headers: Mapping[str, str], body: bytes, *, now_s: float | None = None) -> None:
    """Raises `BadSignature` unless the body was signed with the secret (`whsec_…`) within the last five minutes."""
    lower = {name.lower(): value for name, value in headers.items()}
    try:
        identity, timestamp = lower["webhook-id"], lower["webhook-timestamp"]
        signatures = lower["webhook-signature"].split(" ")
        age_s = (time.time() if now_s is None else now_s) - int(timestamp)
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (KeyError, ValueError) as error:
        raise BadSignature(f"a header is missing or makes no sense: {error}") from error
    if abs(age_s) > TOLERANCE_S:
        raise BadSignature(f"it was signed {age_s:.0f} s ago")
    content = f"{identity}.{timestamp}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    if not any(hmac.compare_digest(expected, signature) for signature in signatures):
        raise BadSignature("the signature does not fit the body")
