"""The client against a running service on a simulated web; run by crates/fetchwell/tests/it/serve_python.rs.

The web has `pages.test` (pages), `gone.test` (404), `private.test` (robots.txt disallows /) and `down.test` (refuses).
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta, timezone
from itertools import islice

import httpx
from fetchwell_client import (
    AsyncFetchwell,
    BadSignature,
    Batch,
    BatchCompletedEvent,
    Body,
    Fetch,
    Fetchwell,
    Message,
    Problem,
    Receipt,
    Redirect,
    ResultEvent,
    StreamEvent,
    Unreachable,
    WebhookEvent,
    calls,
    verify_webhook,
)
from fetchwell_client.events import EventDecoder
from fetchwell_client.models import read_answer
from scripted import Request, Scripted, server

URL = os.environ["FETCHWELL_URL"]
TOKEN = os.environ["FETCHWELL_TOKEN"]
SECRET = os.environ["FETCHWELL_SECRET"]


def one_page_is_waited_for(fetchwell: Fetchwell) -> None:
    message = fetchwell.fetch("http://pages.test/one", "admhr", "c-1", extract=True)
    assert message.status == "completed" and message.attempts == 1, message
    assert message.outbox is not None and message.outbox.is_success, message
    assert message.outbox.http_status == 200 and message.outbox.content, message
    assert message.outbox.inbox_message_id == message.id and message.outbox.correlation_id == "c-1"
    assert message.outbox.text, "extract adds the text"
    assert fetchwell.message(message.id) == message


def metadata_and_links_are_read(fetchwell: Fetchwell) -> None:
    full = fetchwell.fetch("http://pages.test/article", "admhr", "c-5", extract=True, links=True).outbox
    assert full is not None and full.author == "Ada Keeper, Ben Mason", full
    assert full.authors == ["Ada Keeper", "Ben Mason"] and full.published == "2024-05-17T08:30:00+02:00", full
    assert full.site_name == "The Hive" and full.description == "A town gets its bees back.", full
    assert full.canonical_url == "http://pages.test/bees", full
    assert full.links == ["http://pages.test/", "http://pages.test/more", "http://other.test/hives"], full
    bare = fetchwell.fetch("http://pages.test/one", "admhr", "c-6", extract=True).outbox
    assert bare is not None and bare.author is None and bare.authors == [] and bare.links is None, bare
    plain = fetchwell.fetch("http://pages.test/article", "admhr", "c-7").outbox
    assert plain is not None and plain.author is None and plain.authors is None, plain


def failures_are_results(fetchwell: Fetchwell) -> None:
    for url, status, http_status in [
        ("http://gone.test/x", "http_error", 404),
        ("http://private.test/x", "refused_by_robots", None),
    ]:
        message = fetchwell.fetch(url, "admhr", "c-2")
        assert message.status == "failed" and message.outbox is not None, message
        assert (message.outbox.status, message.outbox.http_status) == (status, http_status), message
        assert message.outbox.error, message


def a_site_that_is_down_is_waited_for_until_the_deadline(fetchwell: Fetchwell) -> None:
    message = fetchwell.fetch("http://down.test/x", "admhr", "c-4", deadline="2s")
    assert message.status == "failed" and message.outbox is not None, message
    assert (message.outbox.status, message.outbox.http_status) == ("timeout", None), message


def what_is_refused_says_why(fetchwell: Fetchwell) -> None:
    for wrong in [Fetch("ftp://pages.test/", "admhr", "c"), Fetch("http://pages.test/", "No Retailer", "c")]:
        try:
            fetchwell.send(wrong)
        except Problem as problem:
            assert problem.status == 422 and problem.members["url"] == wrong.url, problem.members
            assert problem.members["correlation_id"] == "c" and problem.detail, problem.members
        else:
            raise AssertionError(wrong)


def a_repetition_is_not_accepted_twice(fetchwell: Fetchwell) -> None:
    message = Fetch("http://pages.test/again", "admhr", "c-3")
    first, second = (fetchwell.send(message, idempotency_key="k-1") for _ in range(2))
    assert isinstance(first, Message) and first.message_id == second.message_id
    assert first.correlation_id == "c-3" and isinstance(read_answer({"message_id": "m", "status": "queued"}), Receipt)


def a_result_says_where_it_came_from(fetchwell: Fetchwell) -> None:
    moved = fetchwell.fetch("http://pages.test/moved").outbox
    assert moved is not None and moved.final_url == "http://pages.test/one", moved
    assert moved.redirects == [Redirect("http://pages.test/moved", 302)] and moved.from_cache is False, moved
    assert moved.fetched_at is not None and moved.headers is not None, moved
    assert moved.headers["content-type"] == moved.content_type == "text/html", moved
    bare = fetchwell.send(Fetch("http://pages.test/one"))
    assert isinstance(bare, Message) and bare.retailer == "default" and bare.correlation_id == bare.id, bare
    stored = fetchwell.fetch("http://pages.test/moved", max_age="1h").outbox
    assert stored is not None and stored.from_cache and stored.age_seconds is not None, stored
    assert stored.final_url == moved.final_url and stored.fetched_at == moved.fetched_at, stored


def a_caller_finds_and_cancels_its_messages(fetchwell: Fetchwell) -> None:
    # The site is down: the message waits for its next attempt, but for the moments of its attempts.
    sent = fetchwell.send(Fetch("http://down.test/cancel", "admhr", "cancel-1"))
    while True:
        try:
            cancelled = fetchwell.cancel(sent.message_id)
            break
        except Problem as problem:
            assert problem.status == 409, problem
            time.sleep(0.1)
    assert cancelled.status == "failed" and cancelled.outbox is not None, cancelled
    assert cancelled.outbox.status == "cancelled", cancelled
    assert fetchwell.cancel(sent.message_id) == cancelled == fetchwell.message(sent.message_id, wait=1)
    found = fetchwell.messages(correlation_id="cancel-1")
    assert [(one.id, one.result_status) for one in found] == [(sent.message_id, "cancelled")], found
    assert found.next is None and not fetchwell.messages(correlation_id="cancel-1", status="completed").messages
    first = fetchwell.messages(limit=1)
    second = fetchwell.messages(limit=1, after=first.next)
    assert first.messages[0].created_at >= second.messages[0].created_at and first != second, (first, second)


def a_body_is_what_the_site_sent(fetchwell: Fetchwell) -> None:
    photo = fetchwell.fetch("http://pages.test/photo", "admhr", "photo-1")
    assert photo.outbox is not None and photo.outbox.content is None and photo.outbox.body is not None, photo
    body = fetchwell.body(photo.id)
    assert body.content_type == photo.outbox.body.content_type == "image/jpeg", photo
    assert len(body.content) == photo.outbox.body.bytes == 999 and photo.outbox.body.expires_at is not None, photo
    page = fetchwell.fetch("http://pages.test/one", "admhr", "page-1").outbox
    assert page is not None and page.content is not None and page.body is not None, page
    assert fetchwell.body(page.inbox_message_id) == Body(page.content.encode(), "text/html"), page
    assert page.body.expires_at is None, "it is kept as long as the result"
    missing = fetchwell.fetch("http://gone.test/x", "admhr", "missing-1")
    assert fetchwell.body(missing.id).content.startswith(b"status 404"), "the error page"
    private = fetchwell.fetch("http://private.test/x", "admhr", "private-1")
    try:
        fetchwell.body(private.id)
    except Problem as problem:
        assert problem.status == 404 and problem.members["type"].endswith("no-body") and problem.detail, problem
    else:
        raise AssertionError("nothing was fetched")


def results_come_in_order_and_none_is_missed(fetchwell: Fetchwell) -> None:
    receipts = fetchwell.send_all([Fetch(f"http://pages.test/many/{n}", "admhr", f"m-{n}") for n in range(20)])
    waiting, cursor = {receipt.message_id for receipt in receipts}, 0
    for result in fetchwell.results():
        assert int(result.cursor) == cursor + 1, (result.cursor, cursor)
        cursor = int(result.cursor)
        waiting.discard(result.inbox_message_id)
        if not waiting:
            break


def a_batch_is_sent_waited_for_and_read(fetchwell: Fetchwell) -> None:
    messages = [Fetch(f"http://pages.test/batch/{n}", "admhr", f"b-{n}") for n in range(12)]
    wrong = Fetch("ftp://pages.test/", "admhr", "b-wrong")
    sent = fetchwell.send_batch([*messages, wrong], skip_invalid=True, idempotency_key="batch-1")
    assert len(sent.messages) == 12 and sent.estimated_end.tzinfo is not None, sent
    assert [(one.index, one.url, one.correlation_id) for one in sent.skipped] == [(12, wrong.url, "b-wrong")], sent
    again = fetchwell.send_batch([*messages, wrong], skip_invalid=True, idempotency_key="batch-1")
    assert again == sent, (again, sent)
    results = list(fetchwell.batch_results(sent.batch_id))
    assert {result.inbox_message_id for result in results} == {one.message_id for one in sent.messages}, results
    cursors = [int(result.cursor) for result in results]
    assert cursors == sorted(set(cursors)), cursors
    assert list(fetchwell.batch_results(sent.batch_id, after=results[5].cursor)) == results[6:]
    listed = fetchwell.messages(batch=sent.batch_id, status="completed").messages
    assert [one.correlation_id for one in listed] == [f"b-{n}" for n in reversed(range(12))], listed
    batch = fetchwell.wait_for_batch(sent.batch_id)
    assert (batch.counts.total, batch.counts.completed, batch.skipped) == (12, 12, 1), batch
    assert batch.ended_at is not None and batch.created_at <= batch.ended_at, batch
    assert fetchwell.cancel_batch(sent.batch_id) == batch, "it has ended"


def the_rest_of_a_batch_is_cancelled(fetchwell: Fetchwell) -> None:
    messages = [Fetch("http://down.test/x", "admhr", f"d-{n}", deadline="1h") for n in range(3)]
    sent = fetchwell.send_batch(messages)
    fetchwell.cancel_batch(sent.batch_id)
    batch = fetchwell.wait_for_batch(sent.batch_id, poll_s=0.2)
    assert batch.counts.failed == 3 and batch.cancelled_at is not None, batch


def batches_are_listed(fetchwell: Fetchwell) -> None:
    first = fetchwell.batches(limit=1)
    assert first.next is not None, first
    second = fetchwell.batches(first.next, limit=1)
    assert first.batches[0].created_at >= second.batches[0].created_at and first != second, (first, second)
    assert fetchwell.batch(first.batches[0].id).created_at == first.batches[0].created_at


def the_stream_is_resumed_after_any_event(fetchwell: Fetchwell) -> None:
    # Not the cursor of a result with which a batch has ended: the stream would begin with that batch.
    alone = fetchwell.fetch("http://pages.test/one").outbox
    assert alone is not None
    before = alone.cursor
    messages = [Fetch(f"http://pages.test/stream/{n}", "admhr", f"s-{n}") for n in range(3)]
    sent = fetchwell.send_batch(messages)
    events = list(islice(fetchwell.stream(before), 4))
    results = [event.result for event in events if isinstance(event, ResultEvent)]
    assert [event.id for event in events[:3]] == [result.cursor for result in results], events
    assert {result.inbox_message_id for result in results} == {one.message_id for one in sent.messages}, results
    end = events[3]
    assert isinstance(end, BatchCompletedEvent) and end.batch.id == sent.batch_id and end.batch.done, end
    for done in range(3):
        assert list(islice(fetchwell.stream(events[done].id), 3 - done)) == events[done + 1 :], done
    last = fetchwell.send(Fetch("http://pages.test/one", "admhr", "s-last"))
    after = next(fetchwell.stream(end.id))
    assert isinstance(after, ResultEvent) and after.result.inbox_message_id == last.message_id, after


def a_page_is_read_as_text(fetchwell: Fetchwell) -> None:
    markdown = fetchwell.read("http://pages.test/article?a=b%2Fc&d=/e")
    assert "bees" in markdown and "<p>" not in markdown, markdown
    assert fetchwell.read("http://pages.test/article", format="text", max_age=0)
    result = fetchwell.read_result("http://pages.test/article", max_age=600)
    assert result.url == "http://pages.test/article" and result.markdown and result.site_name == "The Hive", result
    try:
        fetchwell.read("http://gone.test/x")
    except Problem as problem:
        assert problem.status == 502 and problem.kind == "no-page", problem.members
        assert problem.members["result"] == "http_error", problem.members
    else:
        raise AssertionError("there is no such page")


def a_webhook_is_verified_listed_and_replayed(fetchwell: Fetchwell) -> None:
    began = datetime.now(timezone.utc) - timedelta(seconds=5)
    with server() as receiver:
        hook = f"{receiver.url}/hook"
        sent = fetchwell.send(Fetch("http://pages.test/one", "admhr", "hook-\u00e4", callback_url=hook))
        delivery = receiver.next()
        event = verified(SECRET, delivery)
        assert (event.id, event.type) == (sent.message_id, "fetch.completed"), event
        assert isinstance(event.data, Message) and event.data == fetchwell.message(sent.message_id), event
        assert event.data.outbox is not None and event.timestamp == event.data.outbox.created_at, event
        nothing_about_it_may_be_changed(delivery)

        fetchwell.send(Fetch("http://pages.test/large", "admhr", "hook-large", callback_url=hook))
        large = verified(SECRET, receiver.next()).data
        assert isinstance(large, Message) and large.outbox is not None, large
        assert large.outbox.content is None and large.outbox.content_omitted, large
        whole = fetchwell.message(large.id).outbox
        assert whole is not None and whole.content and not whole.content_omitted, large

        batch = fetchwell.send_batch([Fetch("http://gone.test/x", "admhr", "hook-b")], callback_url=hook)
        ended = verified(SECRET, receiver.next())
        assert (ended.id, ended.type) == (batch.batch_id, "batch.completed"), ended
        assert isinstance(ended.data, Batch) and ended.data.counts.failed == 1, ended

        listed = fetchwell.deliveries(limit=2)
        assert [one.id for one in listed] and listed.next is not None, listed
        earlier = fetchwell.deliveries(after=listed.next)
        ours = next(one for one in [*listed, *earlier] if one.id == sent.message_id)
        # The attempt may be recorded a moment after the receiver has answered.
        while ours.status == "pending":
            time.sleep(0.1)
            ours = next(one for one in fetchwell.deliveries(limit=200) if one.id == sent.message_id)
        assert (ours.url, ours.status, ours.last_attempts[0].http_status) == (hook, "delivered", 204), ours
        assert fetchwell.replay_delivery(sent.message_id)
        assert verified(SECRET, receiver.next()).id == sent.message_id

        rotated = fetchwell.rotate_webhook_secret("1h")
        assert rotated.previous_until is not None and rotated.webhook_secret != SECRET, rotated.previous_until
        replay = fetchwell.replay_deliveries(began, datetime.now(timezone.utc), status="delivered")
        assert replay.replayed >= 1 and replay.next is None, replay
        again = receiver.next()
        assert len(again.headers["webhook-signature"].split(" ")) == 2, again.headers
        assert verified(SECRET, again).id == verified(rotated.webhook_secret, again).id


def verified(secret: str, delivery: Request) -> WebhookEvent:
    return verify_webhook(secret, delivery.headers, delivery.body)


def nothing_about_it_may_be_changed(delivery: Request) -> None:
    headers, body = delivery.headers, delivery.body
    later_s = float(headers["webhook-timestamp"]) + 301
    for secret, changed, text, now_s in [
        (SECRET, headers, body + b" ", None),
        (SECRET, headers | {"webhook-id": "msg_" + "0" * 32}, body, None),
        (SECRET, headers | {"webhook-timestamp": str(int(later_s))}, body, None),
        (SECRET, headers | {"webhook-signature": "v1,\u00e4"}, body, None),
        (SECRET, headers | {"webhook-signature": "v2" + headers["webhook-signature"][2:]}, body, None),
        (SECRET, headers, body, later_s),
        (SECRET[:-5] + "AAAA=", headers, body, None),
        (SECRET, {}, body, None),
    ]:
        try:
            verify_webhook(secret, changed, text, now_s=now_s)
        except BadSignature:
            continue
        raise AssertionError((changed, now_s))


RESULT = {
    "id": "out_1", "cursor": "1", "inbox_message_id": "msg_1", "url": "http://a.test/", "retailer": "r",
    "correlation_id": "c", "status": "success", "content": "\u00e4 \u2028", "content_type": None, "http_status": 200,
    "error": None, "created_at": "2026-01-01T00:00:00Z", "a_new_field": 1,
}  # fmt: skip


def events_of(*cursors: int) -> bytes:
    lines = [f"id: {n}\nevent: result\ndata: {json.dumps(RESULT | {'cursor': str(n)})}\n\n" for n in cursors]
    return "".join([": a comment\n\n", *lines]).encode()


def a_stream_that_breaks_is_resumed_after_the_last_whole_event() -> None:
    begin, rest = events_of(7), events_of(8).removeprefix(b": a comment\n\n")
    unknown = b'id: 7.1\nevent: something.new\ndata: {"x": 1}\n\n'
    for cut in [1, 4, 9, 30, len(rest) - 2, len(rest) - 1]:
        answers = [
            Scripted(200, begin + unknown + rest[:cut], {"Content-Type": "text/event-stream"}),
            Scripted(503, b"", {"Retry-After": "0"}),
            Scripted(200, rest.replace(b"\n", b"\r\n"), {"Content-Type": "text/event-stream"}),
        ]
        with server(answers) as service, Fetchwell(service.url, "fw_x") as fetchwell:
            events = list(islice(fetchwell.stream("6"), 2))
            assert [event.id for event in events] == ["7", "8"], (cut, events)
            asked = [service.next().headers["last-event-id"] for _ in range(3)]
            assert asked == ["6", "7.1", "7.1"], (cut, asked)


def bytes_make_the_same_events_however_they_arrive() -> None:
    text = events_of(1, 2, 3)
    whole = list(EventDecoder().feed(text))
    assert len(whole) == 3
    for size in [1, 2, 3, 7, 100]:
        decoder = EventDecoder()
        pieces = [text[begin : begin + size] for begin in range(0, len(text), size)]
        assert [event for piece in pieces for event in decoder.feed(piece)] == whole, size


def a_call_is_repeated_only_if_that_does_no_harm() -> None:
    away = Scripted(503, b"{}", {"Retry-After": "0"})
    problem = {"Content-Type": "application/problem+json"}
    message = {name: RESULT[name] for name in ["url", "retailer", "correlation_id", "created_at"]}
    message |= {"id": "msg_1", "caller_id": "c", "status": "queued", "attempts": 0, "outbox": None}
    answers = [away, Scripted(502, b"<html>"), Scripted(200, json.dumps(message).encode())]
    with server(answers) as service, Fetchwell(service.url, "fw_x") as fetchwell:
        assert fetchwell.send(Fetch("http://a.test/")).message_id == "msg_1"
        keys = {service.next().headers["idempotency-key"] for _ in range(3)}
        assert len(keys) == 1, keys
    refusals: list[tuple[Callable[[Fetchwell], object], Scripted]] = [
        (lambda client: client.rotate_webhook_secret(), away),
        (lambda client: client.read("http://a.test/"), Scripted(502, b"{}", problem)),
        (lambda client: client.read("http://a.test/"), Scripted(504, b"{}", problem)),
        (lambda client: client.message("msg_1"), Scripted(404, b"{}", problem)),
    ]
    for call, answer in refusals:
        with server([answer]) as service, Fetchwell(service.url, "fw_x") as fetchwell:
            try:
                call(fetchwell)
            except Problem as refused:
                assert refused.status == answer.status and service.requests.qsize() == 1, refused
            else:
                raise AssertionError(answer)
    with Fetchwell("http://127.0.0.1:9", "fw_x", patience_s=0.5) as nowhere:
        asks: list[Callable[[], object]] = [lambda: nowhere.batch("batch_1"), lambda: next(nowhere.stream())]
        for ask in asks:
            try:
                ask()
            except Unreachable as error:
                assert isinstance(error.__cause__, httpx.ConnectError), error
            else:
                raise AssertionError("nobody listens there")


async def the_same_without_waiting() -> None:
    async with AsyncFetchwell(URL, TOKEN) as fetchwell:
        sent = await fetchwell.send_batch([Fetch(f"http://pages.test/ab/{n}", "admhr", f"ab-{n}") for n in range(5)])
        seen = [result.inbox_message_id async for result in fetchwell.batch_results(sent.batch_id)]
        assert sorted(seen) == [one.message_id for one in sent.messages], seen
        assert (await fetchwell.wait_for_batch(sent.batch_id)).counts.completed == 5
        messages = await asyncio.gather(
            *(fetchwell.fetch(f"http://pages.test/async/{n}", "admhr", f"a-{n}") for n in range(5))
        )
        assert all(isinstance(message, Message) and message.status == "completed" for message in messages)
        result = messages[0].outbox
        assert result is not None and result.content is not None
        assert (await fetchwell.body(messages[0].id)).content == result.content.encode()
        async for result in fetchwell.results():
            assert result.cursor == "1"
            break
        events = [event async for event in first(fetchwell.stream(), 2)]
        assert [event.id for event in events] == ["1", "2"], events
        assert "bees" in await fetchwell.read("http://pages.test/article")
        assert (await fetchwell.read_result("http://pages.test/article")).title
        assert len((await fetchwell.batches(limit=1)).batches) == 1
        delivered = (await fetchwell.deliveries(status="delivered", limit=1)).deliveries[0]
        assert isinstance(await fetchwell.replay_delivery(delivered.id), bool)
        none = await fetchwell.replay_deliveries("2020-01-01T00:00:00Z", "2020-01-02T00:00:00Z")
        assert (none.replayed, none.next) == (0, None)
        try:
            await fetchwell.rotate_webhook_secret()
        except Problem as problem:
            assert problem.status == 409 and problem.kind == "conflict", "one rotation is not over"
        else:
            raise AssertionError("one rotation is not over")


async def first(stream: AsyncIterator[StreamEvent], count: int) -> AsyncIterator[StreamEvent]:
    async for event in stream:
        yield event
        count -= 1
        if count == 0:
            return


def answers_of_whoever_stands_between_are_borne() -> None:
    for retry_after in ["3", "soon", "\u00b2", ""]:
        answer = httpx.Response(503, headers=[(b"Retry-After", retry_after.encode("latin-1"))])
        for attempt in [0, 1, 10, 5_000]:
            assert 0 < calls.pause_s(attempt, answer) <= calls.LONGEST_PAUSE_S, (retry_after, attempt)
    for body in [b"<html>", b"[]", b"null", b'"x"', b"\xff"]:
        try:
            calls.result(httpx.Response(400, content=body))
        except Problem as problem:
            assert problem.status == 400 and str(problem), body
        else:
            raise AssertionError(body)


def main() -> None:
    answers_of_whoever_stands_between_are_borne()
    bytes_make_the_same_events_however_they_arrive()
    a_stream_that_breaks_is_resumed_after_the_last_whole_event()
    a_call_is_repeated_only_if_that_does_no_harm()
    with Fetchwell(URL, TOKEN) as fetchwell:
        one_page_is_waited_for(fetchwell)
        metadata_and_links_are_read(fetchwell)
        failures_are_results(fetchwell)
        a_site_that_is_down_is_waited_for_until_the_deadline(fetchwell)
        what_is_refused_says_why(fetchwell)
        a_repetition_is_not_accepted_twice(fetchwell)
        a_result_says_where_it_came_from(fetchwell)
        a_caller_finds_and_cancels_its_messages(fetchwell)
        a_body_is_what_the_site_sent(fetchwell)
        results_come_in_order_and_none_is_missed(fetchwell)
        a_batch_is_sent_waited_for_and_read(fetchwell)
        the_rest_of_a_batch_is_cancelled(fetchwell)
        batches_are_listed(fetchwell)
        the_stream_is_resumed_after_any_event(fetchwell)
        a_page_is_read_as_text(fetchwell)
        a_webhook_is_verified_listed_and_replayed(fetchwell)
    asyncio.run(the_same_without_waiting())
    print("all held")


main()
