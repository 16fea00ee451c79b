"""The calls of the service as plain data, so that both clients say them once.

A call that failed because the service was away or busy is made again. Messages are sent under an idempotency key, so
one that arrived although its answer was lost is not accepted twice.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from .errors import CursorGone, Problem
from .models import Fetch

LONGEST_WAIT_S = 60
"""The service waits no longer than this for a result."""
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 10.0
PASSING = frozenset({408, 429, 502, 503, 504})
"""Statuses of a service that is away or busy."""


@dataclass(frozen=True, slots=True)
class Call:
    method: str
    path: str
    headers: dict[str, str] = field(default_factory=dict)
    params: dict[str, str] = field(default_factory=dict)
    json: Any = None
    wait_s: float = 0.0
    """How long the service may take on purpose."""


def fetch(message: Fetch, wait: int, idempotency_key: str | None) -> Call:
    headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
    if wait:
        headers["Prefer"] = f"wait={wait}"
    return Call("POST", "/fetch", headers, json=message.to_json(), wait_s=min(wait, LONGEST_WAIT_S))


def batch(
    messages: Sequence[Fetch],
    idempotency_key: str | None,
    callback_url: str | None = None,
    skip_invalid: bool = False,
) -> Call:
    headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
    json: dict[str, Any] = {"messages": [message.to_json() for message in messages]}
    if callback_url is not None:
        json["callback_url"] = callback_url
    if skip_invalid:
        json["invalid"] = "skip"
    return Call("POST", "/fetch/batch", headers, json=json)


def batch_state(batch_id: str) -> Call:
    return Call("GET", f"/batches/{batch_id}")


def cancel_batch(batch_id: str) -> Call:
    return Call("DELETE", f"/batches/{batch_id}")


def batch_results(batch_id: str, after: str | None, limit: int, wait: int) -> Call:
    params = {"limit": str(limit), "wait": str(wait)}
    if after is not None:
        params["after"] = after
    return Call("GET", f"/batches/{batch_id}/results", params=params, wait_s=min(wait, LONGEST_WAIT_S))


def message(message_id: str, wait: int) -> Call:
    params = {"wait": str(min(wait, LONGEST_WAIT_S))} if wait else {}
    return Call("GET", f"/messages/{message_id}", params=params, wait_s=min(wait, LONGEST_WAIT_S))


def cancel(message_id: str) -> Call:
    return Call("DELETE", f"/messages/{message_id}")


def sent(correlation_id: str | None, status: str | None, after: str | None, limit: int) -> Call:
    params = {"limit": str(limit)}
    for name, value in [("correlation_id", correlation_id), ("status", status), ("after", after)]:
        if value is not None:
            params[name] = value
    return Call("GET", "/messages", params=params)


def outbox(after: str | None, limit: int, wait: int) -> Call:
    params = {"limit": str(limit), "wait": str(wait)}
    if after is not None:
        params["after"] = after
    return Call("GET", "/outbox", params=params, wait_s=min(wait, LONGEST_WAIT_S))


def is_passing(answer: httpx.Response | httpx.TransportError) -> bool:
    """Whether it is worth asking again."""
    if isinstance(answer, httpx.Response):
        return answer.status_code in PASSING
    return True


def pause_s(attempt: int, answer: httpx.Response | httpx.TransportError) -> float:
    """How long to wait before asking again: as long as the service says, else longer each time, by chance."""
    # Beyond this many doublings it is the longest pause anyway, and at last no number.
    own: float = random.uniform(0.5, 1.0) * min(FIRST_PAUSE_S * 2 ** min(attempt, 16), LONGEST_PAUSE_S)
    if isinstance(answer, httpx.Response):
        asked = answer.headers.get("retry-after", "")
        return max(own, float(asked)) if asked.isdecimal() else own
    return own


def result(response: httpx.Response) -> Mapping[str, Any]:
    """The JSON of an answer, or the problem that it is."""
    if response.is_success:
        json: Mapping[str, Any] = response.json()
        return json
    try:
        members = response.json()
    except ValueError:
        members = None
    # Whatever stands between us and the service may answer in its own way.
    if not isinstance(members, dict):
        members = {"title": response.reason_phrase, "detail": response.text[:200]}
    kind = CursorGone if response.status_code == 410 else Problem
    raise kind(response.status_code, members)
