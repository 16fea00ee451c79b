/**
 * Fetches the URLs of a list and writes one line of JSON per result, in the order in which they arrive.
 *
 *     FETCHWELL_TOKEN=fw_… node fetch_list.ts admhr < urls.txt > results.jsonl
 */

import { text } from "node:stream/consumers";

import { Fetchwell } from "fetchwell-client";

/** The maximum size of a batch. */
const BATCH = 10_000;

const retailer = process.argv[2] ?? "default";
const fetchwell = new Fetchwell(
  process.env["FETCHWELL_URL"] ?? "http://127.0.0.1:8080",
  process.env["FETCHWELL_TOKEN"] ?? "",
);
const urls = (await text(process.stdin)).split("\n").map((line) => line.trim()).filter(Boolean);
for (let start = 0; start < urls.length; start += BATCH) {
  const messages = urls.slice(start, start + BATCH).map((url) => ({ url, retailer }));
  const batch = await fetchwell.sendBatch(messages, { skipInvalid: true });
  for (const one of batch.skipped) {
    console.error(`${one.url}: ${one.errors?.map((error) => error.detail).join("; ")}`);
  }
  for await (const result of fetchwell.batchResults(batch.batch_id)) {
    console.log(JSON.stringify(result));
  }
}
