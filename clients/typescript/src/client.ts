/** The client: one connection to `fetchwell serve`, for one caller. */

import * as calls from "./calls.js";
import { Connection, sleep, textOf, type ClientOptions } from "./connection.js";
import { FetchwellError } from "./errors.js";
import { EventDecoder } from "./events.js";
import type {
  Batch,
  BatchList,
  BatchPage,
  BatchReceipt,
  Body,
  DeliveryPage,
  Fetch,
  FetchedMessage,
  Message,
  MessageStatus,
  NewSecret,
  OutboxMessage,
  Page,
  Replay,
  SentPage,
  StreamEvent,
} from "./models.js";

/** Options of every call. */
export interface CallOptions {
  /** Aborts the call, including its retries and waits. */
  signal?: AbortSignal;
}

/** Options of calls that wait for a result. */
export interface MessageOptions extends CallOptions {
  /** Waits for the result, in seconds, at most 60. */
  wait?: number;
}

export interface SendOptions extends MessageOptions {
  /** A repeated request with the same key is not accepted twice. By default, each call has its own random key. */
  idempotencyKey?: string;
}

/** The fields of a {@link Fetch}, and how to wait. */
export type FetchOptions = Omit<Fetch, "url"> & MessageOptions;

export interface BatchOptions extends CallOptions {
  /** Gets the signed webhook `batch.completed` when the batch has ended. */
  callback_url?: string;
  /** Skips invalid messages, instead of rejecting the batch. */
  skipInvalid?: boolean;
  idempotencyKey?: string;
}

/** Options for one page of a list. */
export interface ListOptions extends CallOptions {
  /** `next` of the previous page. */
  after?: string;
  limit?: number;
}

export interface PageOptions extends ListOptions {
  /** Waits for a result if there is none yet, in seconds, at most 60. */
  wait?: number;
}

/** Options for an endless sequence of results. */
export interface ResultOptions extends CallOptions {
  /** The cursor of the last result that you have processed; `latest` starts with results from now on. */
  after?: string;
  /** How long each request waits, in seconds, at most 60; 30 by default. */
  wait?: number;
}

export interface StreamOptions extends CallOptions {
  /** The `id` of the last event that you have processed, a cursor, or `latest`. */
  after?: string;
}

export interface ReadOptions extends CallOptions {
  /** How old a stored page may be, in seconds; 3,600 by default. 0 always fetches the page. */
  max_age?: number;
  /** How long to wait for the page, in seconds, at most 60; 30 by default. */
  wait?: number;
}

export interface DeliveryOptions extends ListOptions {
  status?: "pending" | "delivered" | "failed";
}

export interface ReplayOptions extends ListOptions {
  /** Replays deliveries whose results were stored at this time or later. */
  since: string | Date;
  /** Replays deliveries whose results were stored before this time. */
  until: string | Date;
  status?: "delivered" | "failed";
}

/**
 * A connection to `fetchwell serve`, for one caller. While the service is unavailable or busy, calls are retried for up
 * to `patienceMs`. If the service rejects a request, the call throws a {@link ProblemError}.
 */
export class Fetchwell {
  readonly #connection: Connection;

  constructor(baseUrl: string, token: string, options: ClientOptions = {}) {
    this.#connection = new Connection(baseUrl, token, options);
  }

  /** Sends a message, and returns it; with `wait`, including its result if that is available in time. */
  send(message: Fetch, options: SendOptions = {}): Promise<Message> {
    return this.#json(calls.fetch(message, options.wait ?? 0, options.idempotencyKey), options);
  }

  /** Fetches a page and waits for its result, with as many requests as that takes. */
  async fetch(url: string, options: FetchOptions = {}): Promise<FetchedMessage> {
    const { wait = 60, signal, ...fields } = options;
    const waiting: MessageOptions = { wait, ...(signal && { signal }) };
    let message = await this.send({ ...fields, url }, waiting);
    while (!isFetched(message)) {
      await sleep(POLL_PAUSE_MS, signal);
      message = await this.message(message.id, waiting);
    }
    return message;
  }

  /**
   * Sends up to 10,000 messages as a batch, which `waitForBatch` and `batchResults` take. One invalid message rejects
   * the batch, unless `skipInvalid` skips such messages.
   */
  sendBatch(messages: readonly Fetch[], options: BatchOptions = {}): Promise<BatchReceipt> {
    const { callback_url, skipInvalid = false, idempotencyKey } = options;
    return this.#json(calls.batch(messages, callback_url, skipInvalid, idempotencyKey), options);
  }

  /** The progress of a batch. */
  batch(batchId: string, options: CallOptions = {}): Promise<Batch> {
    return this.#json(calls.batchState(batchId), options);
  }

  /** Your batches, newest first. Pass `next` as `after` to get the next page. */
  batches(options: ListOptions = {}): Promise<BatchList> {
    const { signal, ...query } = options;
    return this.#json(calls.batches(query), { signal });
  }

  /** Waits until all messages of a batch have ended. */
  async waitForBatch(batchId: string, options: CallOptions & { pollMs?: number } = {}): Promise<Batch> {
    for (;;) {
      const batch = await this.batch(batchId, options);
      if (batch.done) {
        return batch;
      }
      await sleep(options.pollMs ?? 1_000, options.signal);
    }
  }

  /** Cancels the waiting messages of a batch. */
  cancelBatch(batchId: string, options: CallOptions = {}): Promise<Batch> {
    return this.#json(calls.cancelBatch(batchId), options);
  }

  /** Results of a batch after a cursor, in the order in which they were stored. */
  batchPage(batchId: string, options: PageOptions = {}): Promise<BatchPage> {
    const { signal, ...query } = options;
    return this.#json(calls.batchResults(batchId, query), { signal });
  }

  /** Every result of a batch after a cursor, until the batch has ended. */
  async *batchResults(batchId: string, options: ResultOptions = {}): AsyncGenerator<OutboxMessage, void, void> {
    let { after } = options;
    for (let done = false; !done; ) {
      const page = await this.batchPage(batchId, { wait: 30, ...options, ...(after !== undefined && { after }) });
      yield* page.messages;
      after = page.next;
      done = page.done;
    }
  }

  /** A message, with its result if there is one. */
  message(messageId: string, options: MessageOptions = {}): Promise<Message> {
    return this.#json(calls.message(messageId, options.wait ?? 0), options);
  }

  /**
   * The body of the response, as the site sent it, including images, PDFs and error pages. If there is none, this
   * throws a `ProblemError` with the status 404 that says why.
   */
  async body(messageId: string, options: CallOptions = {}): Promise<Body> {
    const { headers, bytes } = await this.#connection.respond(calls.body(messageId), options.signal);
    return { content: bytes, contentType: headers.get("content-type") ?? "" };
  }

  /**
   * Cancels a waiting message. A message that has ended stays as it is. For a message that is being fetched, this
   * throws a `ProblemError` with the status 409.
   */
  cancel(messageId: string, options: CallOptions = {}): Promise<Message> {
    return this.#json(calls.cancel(messageId), options);
  }

  /** Your messages, newest first. Pass `next` as `after` to get the next page; a page may be empty before the end. */
  messages(
    options: ListOptions & { correlation_id?: string; status?: MessageStatus; batch?: string } = {},
  ): Promise<SentPage> {
    const { signal, ...query } = options;
    return this.#json(calls.sent(query), { signal });
  }

  /** Results after a cursor, in the order in which they were stored. */
  outbox(options: PageOptions = {}): Promise<Page> {
    const { signal, ...query } = options;
    return this.#json(calls.outbox(query), { signal });
  }

  /**
   * Every result after a cursor, forever. Store the cursor of the last result that you have processed: resuming from it
   * misses none and repeats none.
   */
  async *results(options: ResultOptions = {}): AsyncGenerator<OutboxMessage, never, void> {
    let { after } = options;
    for (;;) {
      const page = await this.outbox({ wait: 30, ...options, ...(after !== undefined && { after }) });
      yield* page.messages;
      after = page.next;
    }
  }

  /**
   * Every result after a cursor as it is stored, and every batch that ends, forever. It needs no polling. Store the
   * `id` of the last event that you have processed: resuming from it misses none and repeats none. A broken stream is
   * resumed.
   */
  async *stream(options: StreamOptions = {}): AsyncGenerator<StreamEvent, never, void> {
    const { signal } = options;
    let { after } = options;
    if (after === "latest") {
      // Resolved to a cursor, so that nothing is missed if the stream breaks before its first event.
      after = (await this.outbox({ ...options, limit: 1 })).next;
    }
    const patience = this.#connection.patience();
    for (;;) {
      const decoder = new EventDecoder();
      const pieces = this.#connection.pieces(calls.stream(after), signal);
      try {
        let piece = await pieces.next();
        while (piece.done !== true) {
          patience.progressed();
          for (const event of decoder.feed(piece.value)) {
            after = event.id;
            yield event;
          }
          after = decoder.lastId ?? after;
          piece = await pieces.next();
        }
        await patience.pause(piece.value, signal);
      } finally {
        // Closes the connection if the consumer stops reading.
        await pieces.return(ENDED);
      }
    }
  }

  /**
   * Reads a page as Markdown or as text. A page that was read within the last hour (`max_age`) comes from the store; any
   * other is fetched. It throws a `ProblemError` with the status 502 for a page that cannot be fetched, and 504 for one
   * that is not fetched in time.
   */
  async read(url: string, options: ReadOptions & { format?: "markdown" | "text" } = {}): Promise<string> {
    const { format = "markdown", max_age, wait = 30, signal } = options;
    const call = calls.readPage(url, format, max_age, wait);
    return textOf((await this.#connection.respond(call, signal)).bytes);
  }

  /** Like `read`, but returns all fields of the result. */
  readResult(url: string, options: ReadOptions = {}): Promise<OutboxMessage> {
    return this.#json(calls.readPage(url, "json", options.max_age, options.wait ?? 30), options);
  }

  /** Your webhook deliveries, newest first: all, or those with a status. */
  deliveries(options: DeliveryOptions = {}): Promise<DeliveryPage> {
    const { signal, ...query } = options;
    return this.#json(calls.deliveries(query), { signal });
  }

  /** Sends a webhook again, with the same id. False if it is still pending. */
  async replayDelivery(webhookId: string, options: CallOptions = {}): Promise<boolean> {
    const answer = await this.#json<{ replayed: boolean }>(calls.replayDelivery(webhookId), options);
    return answer.replayed;
  }

  /**
   * Sends the webhooks again whose results were stored in a time range: all, or those that were `delivered` or
   * `failed`. At most 1,000 at once: pass `next` as `after` to continue.
   */
  replayDeliveries(options: ReplayOptions): Promise<Replay> {
    const { signal, since, until, ...rest } = options;
    const body = { ...rest, since: timeText(since), until: timeText(until) };
    return this.#json(calls.replayDeliveries(body), { signal });
  }

  /**
   * Replaces your webhook secret. During the overlap (default `24h`) webhooks are signed with both secrets. The new
   * secret is returned only here, so this call is not retried after a lost response.
   */
  rotateWebhookSecret(options: CallOptions & { overlap?: string } = {}): Promise<NewSecret> {
    return this.#json(calls.rotateWebhookSecret(options.overlap), options);
  }

  async #json<T>(call: calls.Call, options: { signal?: AbortSignal | undefined }): Promise<T> {
    const { status, bytes } = await this.#connection.respond(call, options.signal);
    try {
      return JSON.parse(textOf(bytes)) as T;
    } catch (cause) {
      throw new FetchwellError(`the response to ${call.method} ${call.path} (${status}) is not JSON`, { cause });
    }
  }
}

const POLL_PAUSE_MS = 200;
const ENDED = { error: undefined, isPassing: false, retryAfter: null };

function isFetched(message: Message): message is FetchedMessage {
  return message.outbox !== null;
}

function timeText(moment: string | Date): string {
  return typeof moment === "string" ? moment : moment.toISOString();
}
