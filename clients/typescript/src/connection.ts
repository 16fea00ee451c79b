/** Sends calls, and retries them while the service is unavailable or busy. */

import { clientHeaders, type Call } from "./calls.js";
import { ProblemError, problemOf, Unreachable } from "./errors.js";

export interface ClientOptions {
  /** How long calls are retried while the service is unavailable or busy; 60 s by default. */
  patienceMs?: number;
  /** How long a response may take, in addition to the `wait` of a call; 30 s by default. */
  timeoutMs?: number;
  /** Another implementation of `fetch`, for tests or a proxy. */
  fetch?: typeof globalThis.fetch;
}

/** A response that was read completely. */
export interface Answer {
  status: number;
  headers: Headers;
  bytes: Uint8Array;
}

/** The bytes of a response as text. */
export function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 10_000;
/** Statuses of a service that is unavailable or busy. */
const PASSING = new Set([408, 429, 502, 503, 504]);
/** Retried only if a proxy sent them. From the service itself, they concern the page that it was asked to read. */
const OF_PROXIES = new Set([502, 504]);
const PROBLEM_JSON = "application/problem+json";
/** Connection errors after which nothing has been sent. */
const NOT_SENT = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]);
/** The service sends a line every 15 seconds. After four of these, the connection is considered dead. */
const SILENCE_MS = 60_000;

export class Connection {
  readonly #base: string;
  readonly #token: string;
  readonly #patienceMs: number;
  readonly #timeoutMs: number;
  readonly #fetch: typeof globalThis.fetch;

  constructor(baseUrl: string, token: string, options: ClientOptions) {
    this.#base = new URL(baseUrl).href.replace(/\/+$/, "");
    this.#token = token;
    this.#patienceMs = options.patienceMs ?? 60_000;
    this.#timeoutMs = options.timeoutMs ?? 30_000;
    this.#fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
  }

  /** Returns the response to a call; throws a {@link ProblemError} if the service rejects it. */
  async respond(call: Call, signal?: AbortSignal): Promise<Answer> {
    const patience = this.patience();
    for (;;) {
      const timeout = AbortSignal.timeout(this.#timeoutMs + (call.wait ?? 0) * 1_000);
      const outcome = await this.#attempt(call, either(timeout, signal)).catch((error: unknown): Failure => {
        signal?.throwIfAborted();
        return { error, isPassing: call.isRepeatable !== false || wasNotSent(error), retryAfter: null };
      });
      if (!("error" in outcome)) {
        return outcome;
      }
      await patience.pause(outcome, signal);
    }
  }

  /** Sends a call once. */
  async #attempt(call: Call, signal: AbortSignal): Promise<Answer | Failure> {
    const response = await this.#send(call, signal);
    const { ok, status, headers } = response;
    const bytes = new Uint8Array(await response.arrayBuffer());
    return ok ? { status, headers, bytes } : failureOf(call, response, textOf(bytes));
  }

  /**
   * Reads an endless response, piece by piece. It ends when the connection does; a failure is returned, and the caller
   * decides whether to continue.
   */
  async *pieces(call: Call, signal?: AbortSignal): AsyncGenerator<Uint8Array, Failure> {
    const silence = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const restart = (): void => {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(new Error("nothing arrived for a minute")), SILENCE_MS);
    };
    let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
    try {
      restart();
      const response = await this.#send(call, either(silence.signal, signal));
      if (!response.ok || response.body === null) {
        return failureOf(call, response, await response.text());
      }
      reader = response.body.getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) {
          return { error: new Error("the stream ended"), isPassing: true, retryAfter: null };
        }
        // No timeout while the consumer processes events.
        clearTimeout(timer);
        yield value;
        restart();
      }
    } catch (error) {
      signal?.throwIfAborted();
      return { error, isPassing: true, retryAfter: null };
    } finally {
      clearTimeout(timer);
      await reader?.cancel().catch(() => undefined);
    }
  }

  patience(): Patience {
    return new Patience(this.#base, this.#patienceMs);
  }

  #send(call: Call, signal: AbortSignal): Promise<Response> {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(call.query ?? {})) {
      if (value !== undefined) {
        query.set(name, String(value));
      }
    }
    const headers: Record<string, string> = { ...clientHeaders(this.#token), ...call.headers };
    let body: string | undefined;
    if (call.body !== undefined) {
      headers["Content-Type"] = "application/json";
      body = JSON.stringify(call.body);
    }
    const url = `${this.#base}${call.path}${query.size > 0 ? `?${query}` : ""}`;
    return this.#fetch(url, { method: call.method, headers, body, signal, redirect: "manual" });
  }
}

/** Why a call failed. */
export interface Failure {
  error: unknown;
  /** Whether a retry may help. */
  isPassing: boolean;
  /** The header Retry-After. */
  retryAfter: string | null;
}

function failureOf(call: Call, response: Response, text: string): Failure {
  const { status, headers } = response;
  const isOwn = (headers.get("content-type") ?? "").startsWith(PROBLEM_JSON);
  const isAway = PASSING.has(status) && !(isOwn && OF_PROXIES.has(status));
  const isPassing = call.isRepeatable === false ? status === 429 : isAway;
  return { error: problemOf(status, response.statusText, text), isPassing, retryAfter: headers.get("retry-after") };
}

function wasNotSent(error: unknown): boolean {
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  return typeof cause === "object" && cause !== null && "code" in cause && NOT_SENT.has(String(cause.code));
}

function either(one: AbortSignal, other: AbortSignal | undefined): AbortSignal {
  return other === undefined ? one : AbortSignal.any([one, other]);
}

/** How often and how long a call is retried while the service is unavailable or busy. */
export class Patience {
  readonly #base: string;
  readonly #patienceMs: number;
  #sinceMs: number | undefined = performance.now();
  #attempt = 0;

  constructor(base: string, patienceMs: number) {
    this.#base = base;
    this.#patienceMs = patienceMs;
  }

  /** The service has responded: the next failure counts as the first one. */
  progressed(): void {
    this.#sinceMs = undefined;
    this.#attempt = 0;
  }

  /** Waits before the next retry; throws the error if a retry does not help, or if the time for retries is over. */
  async pause(failure: Failure, signal?: AbortSignal): Promise<void> {
    const nowMs = performance.now();
    this.#sinceMs ??= nowMs;
    const pauseMs = pauseBefore(this.#attempt, failure.retryAfter);
    this.#attempt += 1;
    if (!failure.isPassing || nowMs + pauseMs > this.#sinceMs + this.#patienceMs) {
      throw this.#end(failure.error);
    }
    await sleep(pauseMs, signal);
  }

  #end(error: unknown): unknown {
    if (error instanceof ProblemError) {
      return error;
    }
    // Node's fetch has the reason only in the cause.
    const why = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    return new Unreachable(`${this.#base} could not be reached: ${why}`, { cause: error });
  }
}

/** The Retry-After of the service, or exponential backoff with jitter. */
export function pauseBefore(attempt: number, retryAfter: string | null): number {
  const most = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(attempt, 16), LONGEST_PAUSE_MS);
  const own = most * (0.5 + Math.random() / 2);
  return retryAfter !== null && /^[0-9]{1,9}$/.test(retryAfter) ? Math.max(own, Number(retryAfter) * 1_000) : own;
}

/** Waits; rejects with the reason of the signal if it is aborted. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const abort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", abort, { once: true });
  });
}
