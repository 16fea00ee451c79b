/**
 * Receives webhooks, and writes a line for each one.
 *
 *     FETCHWELL_WEBHOOK_SECRET=whsec_… node receive_webhooks.ts 8090
 */

import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";

import { BadSignature, verifyWebhook } from "fetchwell-client";

const secret = process.env["FETCHWELL_WEBHOOK_SECRET"] ?? "";
/** A webhook is delivered at least once. A real receiver stores these ids with its data. */
const seen = new Set<string>();

const receiver = createServer(async (request, response) => {
  try {
    // The signature covers the received bytes, so read them before any parsing.
    const event = await verifyWebhook(secret, request.headers, await buffer(request));
    if (!seen.has(event.id)) {
      seen.add(event.id);
      console.log(event.type, event.id, "url" in event.data ? event.data.url : event.data.counts);
    }
    response.writeHead(204).end();
  } catch (error) {
    console.error(`${error}`);
    response.writeHead(error instanceof BadSignature ? 401 : 500).end();
  }
});
receiver.listen(Number(process.argv[2] ?? 8090), "127.0.0.1", () => console.log("listening"));
