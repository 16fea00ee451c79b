/**
 * The client against a running service on a simulated web; run by crates/fetchwell/tests/it/serve_typescript.rs.
 *
 * The web has `pages.test` (pages), `gone.test` (404), `private.test` (robots.txt disallows /) and `down.test` (refuses).
 */

import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";

import {
  BadSignature,
  CursorGone,
  Fetchwell,
  ProblemError,
  Unreachable,
  verifyWebhook,
  type Fetch,
  type OutboxMessage,
  type StreamEvent,
  type WebhookEvent,
} from "fetchwell-client";

import { withServer, type Arrived, type Scripted } from "./scripted.ts";

const URL = variable("FETCHWELL_URL");
const TOKEN = variable("FETCHWELL_TOKEN");
const SECRET = variable("FETCHWELL_SECRET");

function variable(name: string): string {
  const value = process.env[name];
  assert(value, `${name} is not set`);
  return value;
}

function page(path: string, correlation_id?: string): Fetch {
  return { url: `http://pages.test/${path}`, retailer: "admhr", ...(correlation_id && { correlation_id }) };
}

async function collect<T>(items: AsyncIterable<T>, count = Infinity): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) {
    all.push(item);
    if (all.length >= count) {
      break;
    }
  }
  return all;
}

async function refused(call: Promise<unknown>): Promise<ProblemError> {
  const error: unknown = await call.then(() => undefined, (error: unknown) => error);
  assert(error instanceof ProblemError, `it was not refused: ${error}`);
  return error;
}

async function onePageIsWaitedFor(fetchwell: Fetchwell): Promise<void> {
  const message = await fetchwell.fetch("http://pages.test/article", { correlation_id: "c-1", extract: true, links: true });
  assert.equal(message.status, "completed");
  const result = message.outbox;
  assert.deepEqual([result.status, result.http_status, result.correlation_id], ["success", 200, "c-1"]);
  assert.deepEqual(result.authors, ["Ada Keeper", "Ben Mason"]);
  assert.equal(result.links?.length, 3);
  assert.deepEqual(await fetchwell.message(message.id, { wait: 1 }), message);
  const moved = (await fetchwell.fetch("http://pages.test/moved")).outbox;
  assert.equal(moved.final_url, "http://pages.test/one");
  assert.deepEqual(moved.redirects, [{ url: "http://pages.test/moved", status: 302 }]);
}

async function failuresAreResults(fetchwell: Fetchwell): Promise<void> {
  for (const [url, status, httpStatus] of [
    ["http://gone.test/x", "http_error", 404],
    ["http://private.test/x", "refused_by_robots", null],
  ] as const) {
    const { outbox } = await fetchwell.fetch(url);
    assert.deepEqual([outbox.status, outbox.http_status], [status, httpStatus]);
    assert(outbox.error);
  }
}

async function whatIsRefusedSaysWhy(fetchwell: Fetchwell): Promise<void> {
  const invalid = await refused(fetchwell.send({ url: "ftp://pages.test/", correlation_id: "c" }));
  assert.deepEqual([invalid.status, invalid.kind], [422, "invalid-field"]);
  assert.equal(invalid.problem.errors?.[0]?.pointer, "/url");
  assert.match(invalid.message, /^422 .*\/url .*ftp:/);
  const gone = await refused(fetchwell.outbox({ after: "999999" }));
  assert(gone instanceof CursorGone && gone.oldest === "0", `${gone}`);
  assert.equal((await refused(new Fetchwell(URL, "fw_wrong").batches())).status, 401);
}

async function aRepetitionIsNotAcceptedTwice(fetchwell: Fetchwell): Promise<void> {
  const send = () => fetchwell.send(page("again"), { idempotencyKey: "ts-1" });
  assert.equal((await send()).id, (await send()).id);
}

async function aCallerFindsAndCancelsItsMessages(fetchwell: Fetchwell): Promise<void> {
  // The site is down: the message waits for its next attempt, but for the moments of its attempts.
  const sent = await fetchwell.send({ url: "http://down.test/x", correlation_id: "cancel-1" });
  let cancelled = await fetchwell.cancel(sent.id).catch(ignoreInFlight);
  while (cancelled === undefined) {
    await pause(100);
    cancelled = await fetchwell.cancel(sent.id).catch(ignoreInFlight);
  }
  assert.equal(cancelled.outbox?.status, "cancelled");
  const found = await fetchwell.messages({ correlation_id: "cancel-1", status: "failed" });
  assert.deepEqual(found.messages.map((one) => [one.id, one.result_status]), [[sent.id, "cancelled"]]);
  assert.equal(found.next, null);
}

function ignoreInFlight(error: unknown): undefined {
  assert(error instanceof ProblemError && error.kind === "in-flight", `${error}`);
}

async function aBatchIsSentWaitedForAndRead(fetchwell: Fetchwell): Promise<void> {
  const messages = Array.from({ length: 12 }, (_, n) => page(`batch/${n}`, `b-${n}`));
  const wrong = { url: "ftp://pages.test/", correlation_id: "b-wrong" };
  const sent = await fetchwell.sendBatch([...messages, wrong], { skipInvalid: true });
  assert.deepEqual(sent.skipped.map((one) => [one.index, one.correlation_id]), [[12, "b-wrong"]]);
  const results = await collect(fetchwell.batchResults(sent.batch_id));
  const ids = (all: OutboxMessage[]) => all.map((one) => one.inbox_message_id).sort();
  assert.deepEqual(ids(results), sent.messages.map((one) => one.message_id).sort());
  const listed = await fetchwell.messages({ batch: sent.batch_id });
  assert.deepEqual(listed.messages.map((one) => one.id).reverse(), sent.messages.map((one) => one.message_id));
  const cursor = results[5]?.cursor;
  assert(cursor);
  assert.deepEqual(await collect(fetchwell.batchResults(sent.batch_id, { after: cursor })), results.slice(6));
  assert.deepEqual(await collect(fetchwell.results({ after: cursor }), 3), results.slice(6, 9));
  const batch = await fetchwell.waitForBatch(sent.batch_id);
  assert.deepEqual([batch.counts.total, batch.counts.completed, batch.skipped], [12, 12, 1]);
  assert.deepEqual(await fetchwell.cancelBatch(sent.batch_id), batch);
  const slow = await fetchwell.sendBatch([{ url: "http://down.test/x", deadline: "1h" }]);
  await fetchwell.cancelBatch(slow.batch_id);
  assert.equal((await fetchwell.waitForBatch(slow.batch_id, { pollMs: 100 })).counts.failed, 1);
  const first = await fetchwell.batches({ limit: 1 });
  assert.deepEqual(first.batches.map((one) => one.id), [slow.batch_id]);
  assert(first.next);
  assert.equal((await fetchwell.batches({ after: first.next, limit: 1 })).batches[0]?.id, sent.batch_id);
}

async function theStreamIsResumedAfterAnyEvent(fetchwell: Fetchwell): Promise<void> {
  // Not the cursor of a result with which a batch has ended: the stream would begin with that batch.
  const before = (await fetchwell.fetch("http://pages.test/one")).outbox.cursor;
  const sent = await fetchwell.sendBatch([0, 1, 2].map((n) => page(`stream/${n}`)));
  const events = await collect(fetchwell.stream({ after: before }), 4);
  const results = events.flatMap((event) => (event.type === "result" ? [event.result] : []));
  assert.deepEqual(events.slice(0, 3).map((event) => event.id), results.map((result) => result.cursor));
  const end = events[3];
  assert(end?.type === "batch.completed" && end.batch.id === sent.batch_id && end.batch.done, JSON.stringify(end));
  for (const [done, event] of events.slice(0, 3).entries()) {
    assert.deepEqual(await collect(fetchwell.stream({ after: event.id }), 3 - done), events.slice(done + 1));
  }
  const last = await fetchwell.send(page("one"));
  const [after] = await collect(fetchwell.stream({ after: end.id }), 1);
  assert(after?.type === "result" && after.result.inbox_message_id === last.id, JSON.stringify(after));
  const stop = AbortSignal.timeout(500);
  await assert.rejects(collect(fetchwell.stream({ after: "latest", signal: stop })), { name: "TimeoutError" });
}

async function aPageIsReadAsText(fetchwell: Fetchwell): Promise<void> {
  const markdown = await fetchwell.read("http://pages.test/article?a=b%2Fc&d=/e");
  assert(markdown.includes("bees") && !markdown.includes("<p>"), markdown);
  assert(await fetchwell.read("http://pages.test/article", { format: "text", max_age: 0 }));
  const result = await fetchwell.readResult("http://pages.test/article", { max_age: 600 });
  assert.deepEqual([result.url, result.site_name], ["http://pages.test/article", "The Hive"]);
  const none = await refused(fetchwell.read("http://gone.test/x"));
  assert.deepEqual([none.status, none.kind, none.problem.result], [502, "no-page", "http_error"]);
}

async function aBodyIsWhatTheSiteSent(fetchwell: Fetchwell): Promise<void> {
  const photo = await fetchwell.fetch("http://pages.test/photo");
  assert.equal(photo.outbox.content, null);
  const { content, contentType } = await fetchwell.body(photo.id);
  assert.deepEqual([content.length, contentType], [999, "image/jpeg"]);
  assert.deepEqual([photo.outbox.body?.bytes, photo.outbox.body?.content_type], [999, "image/jpeg"]);
  const missing = await fetchwell.fetch("http://gone.test/x");
  assert(new TextDecoder().decode((await fetchwell.body(missing.id)).content).startsWith("status 404"));
  const secret = await fetchwell.fetch("http://private.test/x");
  const none = await refused(fetchwell.body(secret.id));
  assert.deepEqual([none.status, none.kind], [404, "no-body"]);
}

async function aWebhookIsVerifiedListedAndReplayed(fetchwell: Fetchwell): Promise<void> {
  const since = new Date(Date.now() - 5_000);
  await withServer([], async (receiver) => {
    const callback_url = `${receiver.url}/hook`;
    const sent = await fetchwell.send({ ...page("one", "hook-ä"), callback_url });
    const delivery = await receiver.next();
    const event = await verified(SECRET, delivery);
    assert(event.type === "fetch.completed" && event.id === sent.id, JSON.stringify(event));
    assert.deepEqual(event.data, await fetchwell.message(sent.id));
    await nothingAboutItMayBeChanged(delivery);

    await fetchwell.send({ ...page("large", "hook-large"), callback_url });
    const large = await verified(SECRET, await receiver.next());
    assert(large.type === "fetch.completed" && large.data.outbox.content_omitted === true, JSON.stringify(large));
    assert.equal(large.data.outbox.content, null);

    const batch = await fetchwell.sendBatch([{ url: "http://gone.test/x" }], { callback_url });
    const ended = await verified(SECRET, await receiver.next());
    assert(ended.type === "batch.completed" && ended.data.id === batch.batch_id, JSON.stringify(ended));
    assert.equal(ended.data.counts.failed, 1);

    // The attempt may be recorded a moment after the receiver has answered.
    let ours = await deliveryOf(fetchwell, sent.id);
    while (ours.status === "pending") {
      await pause(100);
      ours = await deliveryOf(fetchwell, sent.id);
    }
    assert.deepEqual([ours.url, ours.status, ours.last_attempts[0]?.http_status], [callback_url, "delivered", 204]);
    assert.equal(await fetchwell.replayDelivery(sent.id), true);
    assert.equal((await verified(SECRET, await receiver.next())).id, sent.id);

    const rotated = await fetchwell.rotateWebhookSecret({ overlap: "1h" });
    assert(rotated.previous_until !== null && rotated.webhook_secret !== SECRET);
    assert.equal((await refused(fetchwell.rotateWebhookSecret())).kind, "conflict");
    const replay = await fetchwell.replayDeliveries({ since, until: new Date(), status: "delivered" });
    assert(replay.replayed >= 1 && replay.next === null, JSON.stringify(replay));
    const again = await receiver.next();
    assert.equal(String(again.headers["webhook-signature"]).split(" ").length, 2);
    assert.equal((await verified(SECRET, again)).id, (await verified(rotated.webhook_secret, again)).id);
  });
}

function verified(secret: string, { headers, body }: Arrived): Promise<WebhookEvent> {
  return verifyWebhook(secret, headers, body);
}

async function deliveryOf(fetchwell: Fetchwell, id: string) {
  const { deliveries } = await fetchwell.deliveries({ limit: 200 });
  const found = deliveries.find((one) => one.id === id);
  assert(found, `no delivery of ${id}`);
  return found;
}

async function nothingAboutItMayBeChanged({ headers, body }: Arrived): Promise<void> {
  const laterMs = (Number(headers["webhook-timestamp"]) + 301) * 1_000;
  const signature = String(headers["webhook-signature"]);
  for (const [secret, changed, text, nowMs] of [
    [SECRET, headers, `${body} `, undefined],
    [SECRET, { ...headers, "webhook-id": `msg_${"0".repeat(32)}` }, body, undefined],
    [SECRET, { ...headers, "webhook-timestamp": String(laterMs / 1_000) }, body, undefined],
    [SECRET, { ...headers, "webhook-timestamp": "soon" }, body, undefined],
    [SECRET, { ...headers, "webhook-signature": "v1,ä" }, body, undefined],
    [SECRET, { ...headers, "webhook-signature": `v2${signature.slice(2)}` }, body, undefined],
    [SECRET, headers, body, laterMs],
    [`${SECRET.slice(0, -5)}AAAA=`, headers, body, undefined],
    ["whsec_ä", headers, body, undefined],
    [SECRET, {}, body, undefined],
  ] as const) {
    const options = nowMs === undefined ? {} : { nowMs };
    await assert.rejects(verifyWebhook(secret, changed, text, options), BadSignature, JSON.stringify(changed));
  }
  await verifyWebhook(SECRET, new Headers(headers as Record<string, string>), body.toString("utf8"));
}

const RESULT = {
  id: "out_1", cursor: "1", inbox_message_id: "msg_1", url: "http://a.test/", retailer: "r", correlation_id: "c",
  status: "success", content: "ä \u2028", content_type: null, http_status: 200, error: null,
  created_at: "2026-01-01T00:00:00Z", a_new_field: 1,
};

function eventOf(cursor: number): string {
  return `id: ${cursor}\nevent: result\ndata: ${JSON.stringify({ ...RESULT, cursor: String(cursor) })}\n\n`;
}

async function aStreamThatBreaksIsResumedAfterTheLastWholeEvent(): Promise<void> {
  const begin = `: a comment\n\n${eventOf(7)}id: 7.1\nevent: something.new\ndata: {"x": 1}\n\n`;
  const rest = eventOf(8);
  const headers = { "content-type": "text/event-stream" };
  for (const cut of [1, 4, 9, 30, rest.length - 2, rest.length - 1]) {
    for (const breaks of [false, true]) {
      const answers: Scripted[] = [
        { status: 200, body: begin + rest.slice(0, cut), headers, breaks },
        { status: 503, headers: { "retry-after": "0" } },
        { status: 200, body: rest.replaceAll("\n", "\r\n"), headers },
      ];
      await withServer(answers, async (service) => {
        const events = await collect<StreamEvent>(new Fetchwell(service.url, "fw_x").stream({ after: "6" }), 2);
        assert.deepEqual(events.map((event) => event.id), ["7", "8"], `${cut} ${breaks}`);
        const asked = service.arrived.map((one) => one.headers["last-event-id"]);
        assert.deepEqual(asked, ["6", "7.1", "7.1"], `${cut} ${breaks}`);
      });
    }
  }
}

async function aCallIsRepeatedOnlyIfThatDoesNoHarm(): Promise<void> {
  const away: Scripted = { status: 503, body: "{}", headers: { "retry-after": "0" } };
  const headers = { "content-type": "application/problem+json" };
  const answered: Scripted = { status: 200, body: JSON.stringify({ id: "msg_1", outbox: null }) };
  const failures: Scripted[] = [away, { status: 502, body: "<html>" }, { status: 200, breaks: true }];
  await withServer([...failures, answered], async (service) => {
    assert.equal((await new Fetchwell(service.url, "fw_x").send({ url: "http://a.test/" })).id, "msg_1");
    assert.equal(service.arrived.length, 4);
    assert.equal(new Set(service.arrived.map((one) => one.headers["idempotency-key"])).size, 1);
  });
  const refusals: [(client: Fetchwell) => Promise<unknown>, Scripted][] = [
    [(client) => client.rotateWebhookSecret(), away],
    [(client) => client.read("http://a.test/"), { status: 502, body: "{}", headers }],
    [(client) => client.read("http://a.test/"), { status: 504, body: "{}", headers }],
    [(client) => client.message("msg_1"), { status: 404, body: "[]", headers }],
    [(client) => client.message("msg_1"), { status: 301, body: "<html>", headers: { location: "http://b.test/" } }],
  ];
  for (const [call, answer] of refusals) {
    await withServer([answer], async (service) => {
      assert.equal((await refused(call(new Fetchwell(service.url, "fw_x")))).status, answer.status);
      assert.equal(service.arrived.length, 1);
    });
  }
  const nowhere = new Fetchwell("http://127.0.0.1:9", "fw_x", { patienceMs: 500, fetch: refusesConnections });
  await assert.rejects(nowhere.batch("batch_1"), Unreachable);
  await assert.rejects(collect(nowhere.stream()), Unreachable);
  const stop = AbortSignal.timeout(100);
  await assert.rejects(nowhere.batch("batch_1", { signal: stop }), { name: "TimeoutError" });
}

/** `fetch` itself refuses to connect to that port, so this says what it would say. */
function refusesConnections(): Promise<Response> {
  const cause = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
  return Promise.reject(new TypeError("fetch failed", { cause }));
}

await aStreamThatBreaksIsResumedAfterTheLastWholeEvent();
await aCallIsRepeatedOnlyIfThatDoesNoHarm();
const fetchwell = new Fetchwell(URL, TOKEN);
await onePageIsWaitedFor(fetchwell);
await failuresAreResults(fetchwell);
await whatIsRefusedSaysWhy(fetchwell);
await aRepetitionIsNotAcceptedTwice(fetchwell);
await aCallerFindsAndCancelsItsMessages(fetchwell);
await aBatchIsSentWaitedForAndRead(fetchwell);
await theStreamIsResumedAfterAnyEvent(fetchwell);
await aPageIsReadAsText(fetchwell);
await aBodyIsWhatTheSiteSent(fetchwell);
await aWebhookIsVerifiedListedAndReplayed(fetchwell);
console.log("all held");
