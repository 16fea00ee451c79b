"""The client against a running service on a simulated web; run by crates/fetchwell/tests/it/serve_python.rs.

The web has `pages.test` (pages), `gone.test` (404), `private.test` (robots.txt disallows /) and `down.test` (refuses).
"""

from __future__ import annotations

import asyncio
import os
import time

import httpx
from fetchwell_client import AsyncFetchwell, Fetch, Fetchwell, Message, Problem, Receipt, Redirect, calls
from fetchwell_client.models import read_answer

URL = os.environ["FETCHWELL_URL"]
TOKEN = os.environ["FETCHWELL_TOKEN"]


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
        async for result in fetchwell.results():
            assert result.cursor == "1"
            break


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
    with Fetchwell(URL, TOKEN) as fetchwell:
        one_page_is_waited_for(fetchwell)
        metadata_and_links_are_read(fetchwell)
        failures_are_results(fetchwell)
        a_site_that_is_down_is_waited_for_until_the_deadline(fetchwell)
        what_is_refused_says_why(fetchwell)
        a_repetition_is_not_accepted_twice(fetchwell)
        a_result_says_where_it_came_from(fetchwell)
        a_caller_finds_and_cancels_its_messages(fetchwell)
        results_come_in_order_and_none_is_missed(fetchwell)
        a_batch_is_sent_waited_for_and_read(fetchwell)
        the_rest_of_a_batch_is_cancelled(fetchwell)
    asyncio.run(the_same_without_waiting())
    print("all held")


main()
