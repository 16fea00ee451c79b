"""The client for programs that do other things meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any

import httpx

from . import calls
from .events import SILENCE_S, EventDecoder
from .models import (
    Batch,
    BatchList,
    BatchPage,
    BatchReceipt,
    Body,
    DeliveryPage,
    Fetch,
    Message,
    NewSecret,
    OutboxMessage,
    Page,
    Receipt,
    Replay,
    SentPage,
    StreamEvent,
    read,
    read_answer,
    read_batch,
    read_batch_list,
    read_batch_page,
    read_batch_receipt,
    read_deliveries,
    read_page,
    read_sent,
)


class AsyncFetchwell:
    """A connection to `fetchwell serve`, for one caller."""

    def __init__(self, base_url: str, token: str, *, patience_s: float = 60.0, timeout_s: float = 30.0) -> None:
        """`patience_s` is how long the client retries while the service is unavailable or busy."""
        self._http = httpx.AsyncClient(base_url=base_url, headers=calls.client_headers(token), timeout=timeout_s)
        self._patience_s = patience_s
        self._timeout_s = timeout_s

    async def __aenter__(self) -> AsyncFetchwell:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def send(self, message: Fetch, *, wait: int = 0, idempotency_key: str | None = None) -> Receipt | Message:
        """Sends a message, and returns it. With `wait` (seconds, at most 60) it comes back with its result, if that
        came in time. Services of earlier versions return a receipt while there is no result."""
        return read_answer(await self._call(calls.fetch(message, wait, idempotency_key)))

    async def fetch(
        self, url: str, retailer: str | None = None, correlation_id: str = "", *, wait: int = 60, **options: Any
    ) -> Message:
        """Fetches a page and waits for it, however often the service has to be asked; options as in `Fetch`."""
        answer = await self.send(Fetch(url, retailer, correlation_id or url[:256], **options), wait=wait)
        while not isinstance(answer, Message) or answer.outbox is None:
            await asyncio.sleep(calls.FIRST_PAUSE_S)
            answer = await self.message(answer.message_id, wait=wait)
        return answer

    async def send_all(self, messages: Sequence[Fetch], *, idempotency_key: str | None = None) -> list[Receipt]:
        """Sends up to 10,000 messages: all are accepted, or none."""
        answer = await self._call(calls.batch(messages, idempotency_key))
        return [read(Receipt, receipt) for receipt in answer["messages"]]

    async def send_batch(
        self,
        messages: Sequence[Fetch],
        *,
        callback_url: str | None = None,
        skip_invalid: bool = False,
        idempotency_key: str | None = None,
    ) -> BatchReceipt:
        """Sends up to 10,000 messages as a batch, which `wait_for_batch` and `batch_results` take. One invalid message
        refuses all, unless `skip_invalid` leaves such messages out. `callback_url` gets a webhook when it has ended."""
        call = calls.batch(messages, idempotency_key, callback_url, skip_invalid)
        return read_batch_receipt(await self._call(call))

    async def batch(self, batch_id: str) -> Batch:
        """How far a batch is."""
        return read_batch(await self._call(calls.batch_state(batch_id)))

    async def batches(self, after: str | None = None, *, limit: int = 50) -> BatchList:
        """Your batches, newest first. Pass `next` as `after` to get the next page."""
        return read_batch_list(await self._call(calls.batches(after, limit)))

    async def wait_for_batch(self, batch_id: str, *, poll_s: float = 1.0) -> Batch:
        """Waits until all messages of a batch have ended."""
        while not (batch := await self.batch(batch_id)).done:
            await asyncio.sleep(poll_s)
        return batch

    async def cancel_batch(self, batch_id: str) -> Batch:
        """Cancels the messages of a batch that wait."""
        return read_batch(await self._call(calls.cancel_batch(batch_id)))

    async def batch_page(
        self, batch_id: str, after: str | None = None, *, limit: int = 100, wait: int = 0
    ) -> BatchPage:
        """Results of a batch after a cursor, in the order in which they were stored."""
        return read_batch_page(await self._call(calls.batch_results(batch_id, after, limit, wait)))

    async def batch_results(
        self, batch_id: str, after: str | None = None, *, wait: int = 30
    ) -> AsyncIterator[OutboxMessage]:
        """Every result of a batch after a cursor, until the batch has ended."""
        done = False
        while not done:
            page = await self.batch_page(batch_id, after, wait=wait)
            for message in page.messages:
                yield message
            after, done = page.next, page.done

    async def message(self, message_id: str, *, wait: int = 0) -> Message:
        """What became of a message; `wait` (seconds, at most 60) waits for its result."""
        return read(Message, await self._call(calls.message(message_id, wait)))

    async def body(self, message_id: str) -> Body:
        """The body of the response, as the site sent it, including images, PDFs and error pages. If there is none, this
        raises a `Problem` with the status 404 that says why."""
        return calls.bytes_of(await self._respond(calls.body(message_id)))

    async def cancel(self, message_id: str) -> Message:
        """Cancels a message that waits. One that has ended stays as it is; one that is being fetched is a `Problem`
        with the status 409."""
        return read(Message, await self._call(calls.cancel(message_id)))

    async def messages(
        self,
        *,
        correlation_id: str | None = None,
        status: str | None = None,
        batch: str | None = None,
        after: str | None = None,
        limit: int = 50,
    ) -> SentPage:
        """Your messages, newest first. Pass `next` as `after` for the next page; a page may be empty before the end."""
        return read_sent(await self._call(calls.sent(correlation_id, status, batch, after, limit)))

    async def outbox(self, after: str | None = None, *, limit: int = 100, wait: int = 0) -> Page:
        """Results after a cursor, in the order in which they were stored."""
        return read_page(await self._call(calls.outbox(after, limit, wait)))

    async def results(self, after: str | None = None, *, wait: int = 30) -> AsyncIterator[OutboxMessage]:
        """Every result after a cursor, for ever. Keep the cursor of the last one that you are done with: going on
        after it misses none and repeats none."""
        while True:
            page = await self.outbox(after, wait=wait)
            for message in page.messages:
                yield message
            after = page.next

    async def stream(self, after: str | None = None) -> AsyncIterator[StreamEvent]:
        """Every result after a cursor as it is stored, and every batch that ends, forever. It needs no polling. Store
        the `id` of the last event that you have processed: resuming from it misses none and repeats none. `latest`
        starts with events from now on. A broken stream is resumed."""
        if after == "latest":
            # Resolved to a cursor, so that nothing is missed if the stream breaks before its first event.
            after = (await self.outbox(after, limit=1)).next
        patience = calls.Patience(self._patience_s)
        while True:
            call = calls.stream(after)
            answer: calls.Answer
            try:
                async with self._http.stream(
                    call.method, call.path, headers=call.headers, timeout=httpx.Timeout(self._timeout_s, read=SILENCE_S)
                ) as response:
                    answer = response
                    if not response.is_success:
                        await response.aread()
                        if not calls.is_passing(call, response):
                            raise calls.problem(response)
                    else:
                        decoder = EventDecoder()
                        async for piece in response.aiter_bytes():
                            patience.progressed()
                            for event in decoder.feed(piece):
                                after = event.id
                                yield event
                            after = decoder.last_id or after
            except httpx.TransportError as error:
                answer = error
            pause_s = patience.pause_s(answer)
            if pause_s is None:
                raise calls.give_up(self._http.base_url, answer)
            await asyncio.sleep(pause_s)

    async def read(
        self, url: str, *, format: calls.PageFormat = "markdown", max_age: int | None = None, wait: int = 30
    ) -> str:
        """Reads a page as Markdown or as text. A page that was read within the last hour (`max_age`, in seconds) comes
        from the store; any other is fetched; the call waits for it for up to `wait` seconds (at most 60). It raises a
        `Problem` with the status 502 for a page that cannot be fetched, and 504 for one that is not fetched in time."""
        call = calls.read_page(url, calls.FORMATS[format], max_age, wait)
        return (await self._respond(call)).text

    async def read_result(self, url: str, *, max_age: int | None = None, wait: int = 30) -> OutboxMessage:
        """Like `read`, but returns all fields of the result."""
        return read(OutboxMessage, await self._call(calls.read_page(url, "application/json", max_age, wait)))

    async def deliveries(
        self, *, status: str | None = None, after: str | None = None, limit: int = 50
    ) -> DeliveryPage:
        """Your webhook deliveries, newest first: all, or those that are `pending`, `delivered` or `failed`."""
        return read_deliveries(await self._call(calls.deliveries(status, after, limit)))

    async def replay_delivery(self, webhook_id: str) -> bool:
        """Sends a webhook again, with the same id. False if it is still pending."""
        return bool((await self._call(calls.replay_delivery(webhook_id)))["replayed"])

    async def replay_deliveries(
        self,
        since: datetime | str,
        until: datetime | str,
        *,
        status: str | None = None,
        after: str | None = None,
        limit: int = 1_000,
    ) -> Replay:
        """Sends the webhooks again whose results were stored in a time range: all, or those that were `delivered` or
        `failed`. At most 1,000 at once: pass `next` as `after` to continue. Times must have a time zone."""
        return read(Replay, await self._call(calls.replay_deliveries(since, until, status, after, limit)))

    async def rotate_webhook_secret(self, overlap: str | None = None) -> NewSecret:
        """Replaces your webhook secret. During the overlap (default `24h`) webhooks are signed with both secrets. The
        new secret is returned only here, so this call is not retried after a lost response."""
        return read(NewSecret, await self._call(calls.rotate_webhook_secret(overlap)))

    async def _call(self, call: calls.Call) -> Mapping[str, Any]:
        return calls.result(await self._respond(call))

    async def _respond(self, call: calls.Call) -> httpx.Response:
        patience = calls.Patience(self._patience_s)
        while True:
            answer: calls.Answer
            try:
                answer = await self._http.request(
                    call.method,
                    call.path,
                    headers=call.headers,
                    params=call.params,
                    json=call.json,
                    timeout=self._timeout_s + call.wait_s,
                )
            except httpx.TransportError as error:
                answer = error
            if isinstance(answer, httpx.Response) and not calls.is_passing(call, answer):
                return calls.check(answer)
            pause_s = patience.pause_s(answer) if calls.is_passing(call, answer) else None
            if pause_s is None:
                raise calls.give_up(self._http.base_url, answer)
            await asyncio.sleep(pause_s)
