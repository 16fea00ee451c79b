// The JavaScript client of Firecrawl for /v1, unmodified, against a service on the simulated web of `mod.rs`.

import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

const { default: FirecrawlApp } = await import(
  pathToFileURL(`${process.env.FETCHWELL_NODE_MODULES}/firecrawl-v1/dist/index.js`),
);

const apiUrl = process.env.FETCHWELL_URL;
const client = new FirecrawlApp({ apiUrl, apiKey: process.env.FETCHWELL_TOKEN });
const shop = "http://shop.test/";

async function fails(status, words, call) {
  await assert.rejects(call, (error) => {
    assert.equal(error.statusCode, status, error.message);
    assert.ok(error.message.includes(words), error.message);
    return true;
  });
}

const page = await client.scrapeUrl(shop, { formats: ["markdown", "html", "rawHtml", "links"], timeout: 30_000 });
assert.equal(page.success, true);
assert.ok(page.markdown.includes("[hats](http://shop.test/hats?size=l)"), page.markdown);
assert.ok(page.html.includes('<p id="intro">') && page.rawHtml.includes("<script>"));
assert.ok(page.links.includes("http://shop.test/about"));
assert.deepEqual([page.metadata.title, page.metadata.statusCode], ["The shop", 200]);

await fails(400, "screenshot", () => client.scrapeUrl(shop, { formats: ["screenshot"] }));
await fails(403, "robots.txt", () => client.scrapeUrl("http://private.test/"));
await fails(408, "not fetched", () => client.scrapeUrl("http://slow.test/", { timeout: 1_000 }));
const stranger = new FirecrawlApp({ apiUrl, apiKey: `fw_${"a".repeat(43)}` });
// It has a message of its own for other status codes than those that it knows.
await fails(401, "401", () => stranger.scrapeUrl(shop));

const good = Array.from({ length: 120 }, (_, number) => `http://shop.test/list/${number}`);
const bad = ["http://private.test/1", "http://down.test/"];
const job = await client.batchScrapeUrls([...good, ...bad], { formats: ["markdown"] }, 2);
assert.deepEqual([job.success, job.status, job.total, job.data.length], [true, "completed", 122, 120]);
assert.deepEqual(new Set(job.data.map((document) => document.metadata.sourceURL)), new Set(good));

const started = await client.asyncBatchScrapeUrls([...good, ...bad, "ftp://shop.test/"], {}, "k-1", undefined, true);
assert.deepEqual([started.success, started.invalidURLs], [true, ["ftp://shop.test/"]]);
let state;
do {
  state = await client.checkBatchScrapeStatus(started.id);
} while (state.status === "scraping");
assert.ok(state.data.length <= 100 && state.next.startsWith(apiUrl), state.next);
const all = await client.checkBatchScrapeStatus(started.id, true);
assert.equal(all.data.length, 120);
const rest = await client.checkBatchScrapeStatus(started.id, false, state.next);
assert.equal(rest.data.length, 120 - state.data.length);
const told = await client.checkBatchScrapeErrors(started.id);
assert.deepEqual(told.robotsBlocked, [bad[0]]);
assert.deepEqual(told.errors.map((error) => error.url), [bad[1]]);

const mapped = await client.mapUrl(shop);
assert.ok(mapped.success && mapped.links.includes("http://shop.test/coats/1"), `${mapped.links}`);
const hats = await client.mapUrl(shop, { search: "hats", limit: 1, sitemapOnly: true });
assert.deepEqual(hats.links, ["http://shop.test/hats/1"]);

console.log("all held");
