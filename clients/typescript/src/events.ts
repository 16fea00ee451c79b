/** The stream of events: `text/event-stream`, decoded as it arrives. */

import { FetchwellError } from "./errors.js";
import type { StreamEvent } from "./models.js";

/** No event is longer: the service limits bodies. */
const MAX_EVENT_CHARS = 256 * 1024 * 1024;

/** Splits the text of a stream into events. It holds one event at a time, of at most `MAX_EVENT_CHARS`. */
export class EventDecoder {
  /** The id of the last complete event, of a known type or not. */
  lastId: string | undefined;
  readonly #utf8 = new TextDecoder();
  #line = "";
  #data: string[] = [];
  #size = 0;
  #event = "";
  #id: string | undefined;

  /** The events that this piece completes. */
  *feed(piece: Uint8Array): Generator<StreamEvent> {
    const text = this.#utf8.decode(piece, { stream: true });
    let begin = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", begin)) {
      const line = this.#line + text.slice(begin, end);
      this.#line = "";
      begin = end + 1;
      const event = this.#take(line.endsWith("\r") ? line.slice(0, -1) : line);
      if (event !== undefined) {
        yield event;
      }
    }
    this.#line += text.slice(begin);
    if (this.#size + this.#line.length > MAX_EVENT_CHARS) {
      throw new FetchwellError(`an event of the stream is over ${MAX_EVENT_CHARS} characters; read results with outbox()`);
    }
  }

  #take(line: string): StreamEvent | undefined {
    if (line === "") {
      return this.#end();
    }
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") {
      this.#data.push(value);
      this.#size += value.length;
    } else if (name === "event") {
      this.#event = value;
    } else if (name === "id") {
      this.#id = value;
    }
    return undefined;
  }

  #end(): StreamEvent | undefined {
    const type = this.#event;
    const data = this.#data.join("\n");
    this.#event = "";
    this.#data = [];
    this.#size = 0;
    // Only now: the stream may break between the id of an event and its data.
    this.lastId = this.#id;
    const id = this.#id;
    if (data === "" || id === undefined) {
      return undefined;
    }
    switch (type) {
      case "result":
        return { type, id, result: parse(data) };
      case "batch.completed":
        return { type, id, batch: parse(data) };
      default:
        // A newer service may send events that this version does not know.
        return undefined;
    }
  }
}

function parse<T>(data: string): T {
  try {
    return JSON.parse(data) as T;
  } catch (cause) {
    throw new FetchwellError("the stream has an event that is not JSON", { cause });
  }
}
