/** Verifies that a webhook comes from your Fetchwell (Standard Webhooks, version 1), and parses it. */

import { BadSignature, FetchwellError } from "./errors.js";
import type { WebhookEvent } from "./models.js";

/** A webhook with an older or newer timestamp may be a replay attack. */
const TOLERANCE_SECONDS = 300;

/** The headers of the request: those of `fetch` (`Headers`), of Node (`request.headers`) or a plain object. */
export type WebhookHeaders = Headers | Record<string, string | readonly string[] | undefined>;

export interface VerifyOptions {
  /** Now, in milliseconds since 1970. */
  nowMs?: number;
}

/**
 * Returns the event of a webhook. Throws {@link BadSignature} unless the body was signed with the secret (`whsec_…`)
 * within the last five minutes. While a secret is being rotated, a webhook has two signatures, and either secret
 * verifies it.
 *
 * Pass the body exactly as it was received, not JSON that was parsed and serialized again.
 */
export async function verifyWebhook(
  secret: string,
  headers: WebhookHeaders,
  body: string | Uint8Array,
  options: VerifyOptions = {},
): Promise<WebhookEvent> {
  const id = header(headers, "webhook-id");
  const timestamp = header(headers, "webhook-timestamp");
  const signatures = header(headers, "webhook-signature").split(" ");
  if (!/^[0-9]{1,15}$/.test(timestamp)) {
    throw new BadSignature(`the header webhook-timestamp is invalid: ${timestamp}`);
  }
  const ageSeconds = (options.nowMs ?? Date.now()) / 1_000 - Number(timestamp);
  if (Math.abs(ageSeconds) > TOLERANCE_SECONDS) {
    throw new BadSignature(`it was signed ${ageSeconds.toFixed(0)} s ago`);
  }
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const content = concatenated(new TextEncoder().encode(`${id}.${timestamp}.`), bytes);
  const key = await keyOf(secret);
  for (const signature of signatures) {
    const expected = signature.startsWith("v1,") ? fromBase64(signature.slice(3)) : undefined;
    // `verify` compares in constant time.
    if (expected !== undefined && (await crypto.subtle.verify("HMAC", key, expected, content))) {
      return read(id, bytes);
    }
  }
  throw new BadSignature("the signature does not match the body");
}

function header(headers: WebhookHeaders, name: string): string {
  const value = headers instanceof Headers ? headers.get(name) : member(headers, name);
  if (typeof value !== "string") {
    throw new BadSignature(`the header ${name} is missing`);
  }
  return value;
}

function member(headers: Record<string, string | readonly string[] | undefined>, name: string): unknown {
  return Object.entries(headers).find(([known]) => known.toLowerCase() === name)?.[1];
}

async function keyOf(secret: string): Promise<CryptoKey> {
  const key = fromBase64(secret.replace(/^whsec_/, ""));
  if (key === undefined || key.length === 0) {
    throw new BadSignature("the secret must be whsec_ followed by Base64");
  }
  return crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function concatenated(one: Uint8Array, other: Uint8Array): Uint8Array<ArrayBuffer> {
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}

function read(id: string, body: Uint8Array): WebhookEvent {
  try {
    const event = JSON.parse(new TextDecoder().decode(body)) as WebhookEvent;
    return { ...event, id };
  } catch (cause) {
    throw new FetchwellError(`the webhook ${id} has a valid signature, but is not JSON`, { cause });
  }
}
