"""What is sent, and what comes back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, TypeVar, Union

Model = TypeVar("Model")

TIMES = frozenset({"created_at", "fetched_at", "estimated_end", "cancelled_at", "ended_at", "at", "expires_at", "previous_until"})
"""Members that are times."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """A page to be fetched."""

    url: str
    retailer: str | None = None
    """On whose behalf it is fetched; `default` if you name none."""
    correlation_id: str | None = None
    """Your own id for it; the id of the message if you give none."""
    callback_url: str | None = None
    max_age: int | str | None = None
    """A result at most this old will do: seconds, or text such as "10m"."""
    headers: Mapping[str, str] | None = None
    deadline: int | str | None = None
    """How long it is worth having: seconds, text such as "10m", or an RFC 3339 time."""
    extract: bool = False
    """Adds the article to the result: title, text, markdown, authors, date,
    name of the site, description and canonical URL."""
    links: bool = False
    """Adds the URLs that the page links to."""

    def to_json(self) -> dict[str, Any]:
        members = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.headers is not None:
            members["headers"] = dict(self.headers)
        return {name: value for name, value in members.items() if value is not None and value is not False}


@dataclass(frozen=True, slots=True)
class Receipt:
    """A message was accepted: it is committed, and will have a result."""

    message_id: str
    status: str


@dataclass(frozen=True, slots=True)
class Redirect:
    """A redirect that was followed."""

    url: str
    """The URL that redirected."""
    status: int


@dataclass(frozen=True, slots=True)
class BodyInfo:
    """Information about the body of a response."""

    bytes: int
    content_type: str
    expires_at: datetime | None = None
    """When it is deleted at the latest; None if it is kept as long as the result."""


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a response, as the site sent it."""

    content: bytes
    content_type: str
    """The Content-Type of the response."""


@dataclass(frozen=True, slots=True)
class OutboxMessage:
    """What came of a message."""

    id: str
    cursor: str
    """Its position among your results: pass it as `after` to continue from here."""
    inbox_message_id: str
    url: str
    retailer: str
    correlation_id: str
    status: str
    content: str | None
    content_type: str | None
    http_status: int | None
    error: str | None
    created_at: datetime
    title: str | None = None
    text: str | None = None
    markdown: str | None = None
    author: str | None = None
    authors: list[str] | None = None
    """None unless the message had `extract`; empty if the page names no author."""
    published: str | None = None
    """A time as in RFC 3339 if the page states its zone, else a date such as "2024-05-17"."""
    site_name: str | None = None
    description: str | None = None
    canonical_url: str | None = None
    links: list[str] | None = None
    """None unless the message had `links`."""
    final_url: str | None = None
    """The URL of the last request, after redirects."""
    redirects: list[Redirect] | None = None
    """The redirects that led there, in order."""
    fetched_at: datetime | None = None
    etag: str | None = None
    last_modified: str | None = None
    headers: dict[str, str] | None = None
    """Some headers of the response, by name in lower case."""
    from_cache: bool | None = None
    """Whether this is a stored page that answered a message with `max_age`."""
    age_seconds: int | None = None
    """If so, how old the page was then."""
    content_omitted: bool = False
    """In a webhook: whether `content`, `text`, `markdown` and `links` were left out because they are too long."""
    body: BodyInfo | None = None
    """The body of the response, which `body(message_id)` returns; None if there is none."""

    @property
    def is_success(self) -> bool:
        return self.status == "success"


@dataclass(frozen=True, slots=True)
class Message:
    """A message, with its result when there is one."""

    id: str
    url: str
    retailer: str
    correlation_id: str
    caller_id: str
    status: str
    created_at: datetime
    attempts: int
    outbox: OutboxMessage | None

    @property
    def message_id(self) -> str:
        return self.id


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message in a list, without its result."""

    id: str
    url: str
    retailer: str
    correlation_id: str
    caller_id: str
    status: str
    created_at: datetime
    attempts: int
    result_status: str | None
    """The status of its result; None until there is one."""


@dataclass(frozen=True, slots=True)
class SentPage:
    """A part of the list of your messages."""

    messages: list[SentMessage]
    next: str | None
    """Pass it as `after` to get the next page; None at the end."""

    def __iter__(self) -> Iterator[SentMessage]:
        return iter(self.messages)


@dataclass(frozen=True, slots=True)
class Skipped:
    """An invalid message of a batch, which was left out."""

    index: int
    """Its place in what was sent, counted from 0."""
    detail: str
    url: str | None = None
    correlation_id: str | None = None
    errors: list[dict[str, Any]] | None = None
    """What is wrong with it: `pointer` and `detail` of each fault."""


@dataclass(frozen=True, slots=True)
class BatchReceipt:
    """A batch was accepted: all of its messages are committed, and each will have a result."""

    batch_id: str
    messages: list[Receipt]
    skipped: list[Skipped]
    estimated_end: datetime


@dataclass(frozen=True, slots=True)
class BatchCounts:
    """The messages of a batch by status."""

    total: int
    queued: int
    processing: int
    completed: int
    failed: int
    cancelled: int
    """Those of `failed` that were cancelled."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages that were sent together."""

    id: str
    caller_id: str
    created_at: datetime
    done: bool
    """Whether all of its messages have ended."""
    counts: BatchCounts
    skipped: int
    estimated_end: datetime
    cancelled_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class BatchPage:
    """A part of the results of a batch."""

    messages: list[OutboxMessage]
    next: str
    """Pass it as `after` to get the next page."""
    done: bool
    """Whether the batch has ended and no results follow."""

    def __iter__(self) -> Iterator[OutboxMessage]:
        return iter(self.messages)


@dataclass(frozen=True, slots=True)
class BatchList:
    """A part of the list of your batches."""

    batches: list[Batch]
    next: str | None
    """Pass it as `after` to get the next page; None at the end."""

    def __iter__(self) -> Iterator[Batch]:
        return iter(self.batches)


@dataclass(frozen=True, slots=True)
class ResultEvent:
    """A result was stored."""

    id: str
    """Pass it as `after` to resume the stream after this event."""
    result: OutboxMessage


@dataclass(frozen=True, slots=True)
class BatchCompletedEvent:
    """A batch has ended. All of its results came before this event."""

    id: str
    """Pass it as `after` to resume the stream after this event."""
    batch: Batch


StreamEvent = Union[ResultEvent, BatchCompletedEvent]
"""An event of the stream."""


@dataclass(frozen=True, slots=True)
class WebhookAttempt:
    """An attempt to deliver a webhook."""

    at: datetime
    http_status: int | None
    """The status of the response; None if there was none."""
    error: str | None
    """Why it failed; None if it was accepted."""


@dataclass(frozen=True, slots=True)
class WebhookDelivery:
    """A webhook, delivered or not."""

    id: str
    """Its `webhook-id`: the id of its message or batch."""
    url: str
    status: str
    """`pending`, `delivered` or `failed`."""
    attempts: int
    created_at: datetime
    last_attempts: list[WebhookAttempt]
    """Oldest first."""


@dataclass(frozen=True, slots=True)
class DeliveryPage:
    """A part of the list of your deliveries."""

    deliveries: list[WebhookDelivery]
    next: str | None
    """Pass it as `after` to get the next page; None at the end."""

    def __iter__(self) -> Iterator[WebhookDelivery]:
        return iter(self.deliveries)


@dataclass(frozen=True, slots=True)
class Replay:
    """Deliveries are sent again."""

    replayed: int
    next: str | None
    """Pass it as `after` to replay the rest; None if there is none."""


@dataclass(frozen=True, slots=True)
class NewSecret:
    """A new webhook secret, which is shown only once."""

    webhook_secret: str
    previous_until: datetime | None
    """Until this time, webhooks are also signed with the previous secret."""


@dataclass(frozen=True, slots=True)
class Page:
    """A part of the outbox."""

    messages: list[OutboxMessage]
    next: str
    """Pass it as `after` to get the next page."""

    def __iter__(self) -> Iterator[OutboxMessage]:
        return iter(self.messages)


def read(model: type[Model], json: Mapping[str, Any]) -> Model:
    """Reads what this version knows; what a later service adds is left out."""
    known = {field.name for field in fields(model)}  # type: ignore[arg-type]
    members = {name: value for name, value in json.items() if name in known}
    for name in TIMES.intersection(members):
        if members[name] is not None:
            members[name] = read_time(members[name])
    if members.get("redirects") is not None:
        members["redirects"] = [read(Redirect, redirect) for redirect in members["redirects"]]
    if members.get("body") is not None:
        members["body"] = read(BodyInfo, members["body"])
    if members.get("outbox") is not None:
        members["outbox"] = read(OutboxMessage, members["outbox"])
    return model(**members)


def read_time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def read_page(json: Mapping[str, Any]) -> Page:
    return Page([read(OutboxMessage, message) for message in json["messages"]], str(json["next"]))


def read_sent(json: Mapping[str, Any]) -> SentPage:
    return SentPage([read(SentMessage, message) for message in json["messages"]], json["next"])


def read_answer(json: Mapping[str, Any]) -> Receipt | Message:
    """The answer to a message: the message itself. A service of an earlier version only says that it was accepted."""
    return read(Message, json) if "id" in json else read(Receipt, json)


def read_batch_receipt(json: Mapping[str, Any]) -> BatchReceipt:
    return read(
        BatchReceipt,
        {
            **json,
            "messages": [read(Receipt, message) for message in json["messages"]],
            "skipped": [read(Skipped, skipped) for skipped in json["skipped"]],
        },
    )


def read_batch(json: Mapping[str, Any]) -> Batch:
    return read(Batch, {**json, "counts": read(BatchCounts, json["counts"])})


def read_batch_page(json: Mapping[str, Any]) -> BatchPage:
    messages = [read(OutboxMessage, message) for message in json["messages"]]
    return BatchPage(messages, str(json["next"]), bool(json["done"]))


def read_batch_list(json: Mapping[str, Any]) -> BatchList:
    return BatchList([read_batch(batch) for batch in json["batches"]], json["next"])


def read_deliveries(json: Mapping[str, Any]) -> DeliveryPage:
    return DeliveryPage([read_delivery(delivery) for delivery in json["deliveries"]], json["next"])


def read_delivery(json: Mapping[str, Any]) -> WebhookDelivery:
    attempts = [read(WebhookAttempt, attempt) for attempt in json["last_attempts"]]
    return read(WebhookDelivery, {**json, "last_attempts": attempts})
