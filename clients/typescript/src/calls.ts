/** The calls of the service as plain data. */

import type { Fetch } from "./models.js";
import { VERSION } from "./version.js";

/** One call: what is sent, and how it may be repeated. */
export interface Call {
  method: "GET" | "POST" | "DELETE";
  path: string;
  headers?: Record<string, string>;
  query?: Record<string, string | number | undefined>;
  body?: unknown;
  /** How long the service is asked to wait, in seconds. */
  wait?: number;
  /** False if it is not safe to send the call again after a lost response. */
  isRepeatable?: false;
}

/** The service waits no longer than this for a result. */
const LONGEST_WAIT_SECONDS = 60;

const FORMATS = { markdown: "text/markdown", text: "text/plain", json: "application/json" };

export function clientHeaders(token: string): Record<string, string> {
  return { Authorization: `Bearer ${token}`, "User-Agent": `fetchwell-client-typescript/${VERSION}` };
}

export function fetch(message: Fetch, wait: number, key: string | undefined): Call {
  const prefer = wait > 0 ? { Prefer: `wait=${wait}` } : undefined;
  return { method: "POST", path: "/fetch", headers: { ...idempotency(key), ...prefer }, body: message, wait };
}

export function batch(
  messages: readonly Fetch[],
  callbackUrl: string | undefined,
  skipInvalid: boolean,
  key: string | undefined,
): Call {
  const invalid = skipInvalid ? "skip" : undefined;
  const body = { messages, callback_url: callbackUrl, invalid };
  return { method: "POST", path: "/fetch/batch", headers: idempotency(key), body };
}

export function batchState(id: string): Call {
  return { method: "GET", path: `/batches/${encodeURIComponent(id)}` };
}

export function batches(query: { after?: string; limit?: number }): Call {
  return { method: "GET", path: "/batches", query };
}

export function cancelBatch(id: string): Call {
  return { method: "DELETE", path: `/batches/${encodeURIComponent(id)}` };
}

export function batchResults(id: string, query: { after?: string; limit?: number; wait?: number }): Call {
  return { method: "GET", path: `/batches/${encodeURIComponent(id)}/results`, query, wait: query.wait ?? 0 };
}

export function message(id: string, wait: number): Call {
  const query = { wait: wait > 0 ? Math.min(wait, LONGEST_WAIT_SECONDS) : undefined };
  return { method: "GET", path: `/messages/${encodeURIComponent(id)}`, query, wait };
}

export function body(id: string): Call {
  return { method: "GET", path: `/messages/${encodeURIComponent(id)}/body` };
}

export function cancel(id: string): Call {
  return { method: "DELETE", path: `/messages/${encodeURIComponent(id)}` };
}

export function sent(query: {
  correlation_id?: string;
  status?: string;
  batch?: string;
  after?: string;
  limit?: number;
}): Call {
  return { method: "GET", path: "/messages", query };
}

export function outbox(query: { after?: string; limit?: number; wait?: number }): Call {
  return { method: "GET", path: "/outbox", query, wait: query.wait ?? 0 };
}

export function stream(after: string | undefined): Call {
  const resume = after === undefined ? undefined : { "Last-Event-ID": after };
  return { method: "GET", path: "/outbox", headers: { Accept: "text/event-stream", ...resume } };
}

export function readPage(
  url: string,
  format: keyof typeof FORMATS,
  maxAge: number | undefined,
  wait: number,
): Call {
  const age = maxAge === undefined ? undefined : { "Cache-Control": `max-age=${maxAge}` };
  const headers = { Accept: FORMATS[format], Prefer: `wait=${wait}`, ...age };
  const whole = url.includes("://") ? url : `https://${url}`;
  // Percent-encoded completely, so that no proxy normalizes it.
  return { method: "GET", path: `/r/${encodeURIComponent(whole)}`, headers, wait };
}

export function deliveries(query: { status?: string; after?: string; limit?: number }): Call {
  return { method: "GET", path: "/webhooks/deliveries", query };
}

export function replayDelivery(id: string): Call {
  return { method: "POST", path: `/webhooks/deliveries/${encodeURIComponent(id)}/replay` };
}

export function replayDeliveries(body: Record<string, unknown>): Call {
  return { method: "POST", path: "/webhooks/deliveries/replay", body };
}

/** Only this response has the new secret: a retry would rotate it again. */
export function rotateWebhookSecret(overlap: string | undefined): Call {
  return { method: "POST", path: "/webhooks/secret", body: { overlap }, isRepeatable: false };
}

/** Messages are sent with a key, so that a retry after a lost response is not accepted twice. */
function idempotency(key: string | undefined): Record<string, string> {
  return { "Idempotency-Key": key ?? crypto.randomUUID() };
}
