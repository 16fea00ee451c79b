/** Requests and responses: names for the schemas of the OpenAPI document. */

import type { components } from "./openapi.js";

type Schemas = components["schemas"];

/** A page to be fetched. Only `url` is required. */
export type Fetch = Schemas["FetchRequest"];
/** `queued`, `processing`, `completed` or `failed`. */
export type MessageStatus = Schemas["MessageStatus"];
/** `success`, `http_error`, `timeout`, … */
export type ResultStatus = Schemas["ResultStatus"];
/** A message, with its result when there is one. */
export type Message = Schemas["Message"];
/** A message that has its result. */
export type FetchedMessage = Message & { outbox: OutboxMessage };
/** The result of a message. */
export type OutboxMessage = Schemas["OutboxMessage"];
/** A redirect that was followed. */
export type Redirect = Schemas["Redirect"];

/** The body of a response, as the site sent it. */
export interface Body {
  content: Uint8Array;
  /** The Content-Type of the response. */
  contentType: string;
}
/** A message in a list, without its result. */
export type SentMessage = Schemas["SentMessage"];
/** A part of the list of your messages. */
export type SentPage = Schemas["SentMessages"];
/** A message of a batch was accepted: it is committed, and will have a result. */
export type Receipt = Schemas["Accepted"];
/** An invalid message of a batch, which was left out. */
export type Skipped = Schemas["SkippedMessage"];
/** A batch was accepted: all of its messages are committed, and each will have a result. */
export type BatchReceipt = Required<Schemas["AcceptedBatch"]>;
/** Messages that were sent together. */
export type Batch = Schemas["BatchState"];
/** The messages of a batch by status. */
export type BatchCounts = Schemas["BatchCounts"];
/** A part of the list of your batches. */
export type BatchList = Schemas["Batches"];
/** A part of the results of a batch. */
export type BatchPage = Schemas["BatchResults"];
/** An attempt to deliver a webhook. */
export type WebhookAttempt = Schemas["WebhookAttempt"];
/** A webhook, delivered or not. */
export type WebhookDelivery = Schemas["WebhookDelivery"];
/** A part of the list of your deliveries. */
export type DeliveryPage = Schemas["WebhookDeliveries"];
/** The result of a replay. */
export type Replay = Schemas["ReplayStarted"];
/** A new webhook secret, which is shown only once. */
export type NewSecret = Schemas["NewWebhookSecret"];
/** Why the service rejected a request (RFC 9457). */
export type Problem = Schemas["Problem"];
/** What is wrong with a part of a request. */
export type FieldError = Schemas["FieldError"];

/** A part of the outbox. */
export interface Page {
  messages: OutboxMessage[];
  /** Pass it as `after` to get the next page. */
  next: string;
}

/** A result was stored. */
export interface ResultEvent {
  type: "result";
  /** Pass it as `after` to resume the stream after this event. */
  id: string;
  result: OutboxMessage;
}

/** A batch has ended. All of its results came before this event. */
export interface BatchCompletedEvent {
  type: "batch.completed";
  /** Pass it as `after` to resume the stream after this event. */
  id: string;
  batch: Batch;
}

/** An event of the stream. */
export type StreamEvent = ResultEvent | BatchCompletedEvent;

/** A webhook with a valid signature. */
export type WebhookEvent = (
  | Schemas["FetchCompleted"]
  | Schemas["FetchFailed"]
  | Schemas["BatchCompleted"]
) & {
  /** The `webhook-id`. It is the same in every attempt and replay: ignore an event that you have already processed. */
  id: string;
};
