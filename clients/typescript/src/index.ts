/**
 * A client of `fetchwell serve`: send pages to be fetched, and read what came back.
 *
 * ```ts
 * import { Fetchwell } from "fetchwell-client";
 *
 * const fetchwell = new Fetchwell("http://127.0.0.1:8080", token);
 * const message = await fetchwell.fetch("https://example.com/", { extract: true });
 * ```
 *
 * @module
 */

export { Fetchwell } from "./client.js";
export type {
  BatchOptions,
  CallOptions,
  DeliveryOptions,
  FetchOptions,
  ListOptions,
  MessageOptions,
  PageOptions,
  ReadOptions,
  ReplayOptions,
  ResultOptions,
  SendOptions,
  StreamOptions,
} from "./client.js";
export type { ClientOptions } from "./connection.js";
export { BadSignature, CursorGone, FetchwellError, ProblemError, Unreachable } from "./errors.js";
export type {
  Batch,
  BatchCompletedEvent,
  BatchCounts,
  BatchList,
  BatchPage,
  BatchReceipt,
  Body,
  DeliveryPage,
  Fetch,
  FetchedMessage,
  FieldError,
  Message,
  MessageStatus,
  NewSecret,
  OutboxMessage,
  Page,
  Problem,
  Receipt,
  Redirect,
  Replay,
  ResultEvent,
  ResultStatus,
  SentMessage,
  SentPage,
  Skipped,
  StreamEvent,
  WebhookAttempt,
  WebhookDelivery,
  WebhookEvent,
} from "./models.js";
export { VERSION } from "./version.js";
export { verifyWebhook } from "./webhooks.js";
export type { VerifyOptions, WebhookHeaders } from "./webhooks.js";
