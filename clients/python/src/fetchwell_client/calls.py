"""The calls of the service as plain data, shared by both clients.

A call is retried while the service is unavailable or busy. Messages are sent with an idempotency key, so that a retry
after a lost response is not accepted twice.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from urllib.parse import quote

import httpx

from .errors import CursorGone, Problem, Unreachable
from .models import Body, Fetch
from .version import __version__

LONGEST_WAIT_S = 60
"""The service waits no longer than this for a result."""
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 10.0
PASSING = frozenset({408, 429, 502, 503, 504})
"""Statuses of a service that is unavailable or busy."""
OF_PROXIES = frozenset({502, 504})
"""Retried only if a proxy sent them. From the service itself, they concern the page that it was asked to read."""
PROBLEM_JSON = "application/problem+json"
FORMATS = {"markdown": "text/markdown", "text": "text/plain"}

PageFormat = Literal["markdown", "text"]
"""The format in which a page is read."""


@dataclass(frozen=True, slots=True)
class Call:
    method: str
    path: str
    headers: dict[str, str] = field(default_factory=dict)
    params: dict[str, str] = field(default_factory=dict)
    json: Any = None
    wait_s: float = 0.0
    """How long the service is asked to wait."""
    is_repeatable: bool = True
    """Whether it is safe to send the call again after a lost response."""


def client_headers(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", "User-Agent": f"fetchwell-client-python/{__version__}"}


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


def body(message_id: str) -> Call:
    return Call("GET", f"/messages/{message_id}/body")


def cancel(message_id: str) -> Call:
    return Call("DELETE", f"/messages/{message_id}")


def sent(
    correlation_id: str | None, status: str | None, batch: str | None, after: str | None, limit: int
) -> Call:
    params = {"limit": str(limit)}
    given = {"correlation_id": correlation_id, "status": status, "batch": batch, "after": after}
    for name, value in given.items():
        if value is not None:
            params[name] = value
    return Call("GET", "/messages", params=params)


def outbox(after: str | None, limit: int, wait: int) -> Call:
    params = {"limit": str(limit), "wait": str(wait)}
    if after is not None:
        params["after"] = after
    return Call("GET", "/outbox", params=params, wait_s=min(wait, LONGEST_WAIT_S))


def batches(after: str | None, limit: int) -> Call:
    params = {"limit": str(limit)}
    if after is not None:
        params["after"] = after
    return Call("GET", "/batches", params=params)


def stream(after: str | None) -> Call:
    headers = {"Accept": "text/event-stream"}
    if after is not None:
        headers["Last-Event-ID"] = after
    return Call("GET", "/outbox", headers)


def read_page(url: str, accept: str, max_age: int | None, wait: int) -> Call:
    headers = {"Accept": accept, "Prefer": f"wait={wait}"}
    if max_age is not None:
        headers["Cache-Control"] = f"max-age={max_age}"
    whole = url if "://" in url else f"https://{url}"
    # Percent-encoded completely, so that no proxy normalizes it.
    return Call("GET", f"/r/{quote(whole, safe='')}", headers, wait_s=min(wait, LONGEST_WAIT_S))


def deliveries(status: str | None, after: str | None, limit: int) -> Call:
    params = {"limit": str(limit)}
    for name, value in [("status", status), ("after", after)]:
        if value is not None:
            params[name] = value
    return Call("GET", "/webhooks/deliveries", params=params)


def replay_delivery(webhook_id: str) -> Call:
    return Call("POST", f"/webhooks/deliveries/{quote(webhook_id, safe='')}/replay")


def replay_deliveries(
    since: datetime | str, until: datetime | str, status: str | None, after: str | None, limit: int
) -> Call:
    json: dict[str, Any] = {"since": time_text(since), "until": time_text(until), "limit": limit}
    for name, value in [("status", status), ("after", after)]:
        if value is not None:
            json[name] = value
    return Call("POST", "/webhooks/deliveries/replay", json=json)


def rotate_webhook_secret(overlap: str | None) -> Call:
    json = {} if overlap is None else {"overlap": overlap}
    # Only this response has the new secret: a retry would rotate it again.
    return Call("POST", "/webhooks/secret", json=json, is_repeatable=False)


def time_text(moment: datetime | str) -> str:
    return moment if isinstance(moment, str) else moment.isoformat()


Answer = httpx.Response | httpx.TransportError


def is_passing(call: Call, answer: Answer) -> bool:
    """Whether a retry may help."""
    if isinstance(answer, httpx.Response):
        if answer.status_code in OF_PROXIES and answer.headers.get("content-type", "").startswith(PROBLEM_JSON):
            return False
        return answer.status_code in PASSING if call.is_repeatable else answer.status_code == 429
    return call.is_repeatable or isinstance(answer, (httpx.ConnectError, httpx.ConnectTimeout))


def pause_s(attempt: int, answer: Answer) -> float:
    """How long to wait before a retry: the Retry-After of the service, or exponential backoff with jitter."""
    # The exponent is limited so that the power does not overflow; the pause is at its maximum long before.
    own: float = random.uniform(0.5, 1.0) * min(FIRST_PAUSE_S * 2 ** min(attempt, 16), LONGEST_PAUSE_S)
    if isinstance(answer, httpx.Response):
        asked = answer.headers.get("retry-after", "")
        return max(own, float(asked)) if asked.isdecimal() else own
    return own


class Patience:
    """How often and how long a call is retried while the service is unavailable or busy."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._since_s: float | None = time.monotonic()
        self._attempt = 0

    def progressed(self) -> None:
        """The service has responded: the next failure counts as the first one."""
        self._since_s, self._attempt = None, 0

    def pause_s(self, answer: Answer) -> float | None:
        """How long to wait before the next retry; None if the time for retries is over."""
        now_s = time.monotonic()
        if self._since_s is None:
            self._since_s = now_s
        pause = pause_s(self._attempt, answer)
        self._attempt += 1
        return pause if now_s + pause <= self._since_s + self._patience_s else None


def give_up(base_url: httpx.URL, answer: Answer) -> Exception:
    """The error of a call that is not retried."""
    if isinstance(answer, httpx.Response) and not answer.is_success:
        return problem(answer)
    error = Unreachable(f"{base_url} could not be reached: {answer}")
    error.__cause__ = answer if isinstance(answer, Exception) else None
    return error


def result(response: httpx.Response) -> Mapping[str, Any]:
    """The JSON of a response; raises a `Problem` if it is one."""
    json: Mapping[str, Any] = check(response).json()
    return json


def check(response: httpx.Response) -> httpx.Response:
    """Returns the response; raises a `Problem` if it is one."""
    if response.is_success:
        return response
    raise problem(response)


def bytes_of(response: httpx.Response) -> Body:
    """The body of a page; raises a `Problem` if the response is one."""
    return Body(check(response).content, response.headers.get("content-type", ""))


def problem(response: httpx.Response) -> Problem:
    """Converts an error response to a problem."""
    try:
        members = response.json()
    except ValueError:
        members = None
    # The response may come from a proxy, in any format.
    if not isinstance(members, dict):
        members = {"title": response.reason_phrase, "detail": response.text[:200]}
    kind = CursorGone if response.status_code == 410 else Problem
    return kind(response.status_code, members)
