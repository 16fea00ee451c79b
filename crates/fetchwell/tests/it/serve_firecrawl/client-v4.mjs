// The JavaScript client of Firecrawl for /v2, unmodified, against a service on the simulated web of `mod.rs`.

import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

const { default: Firecrawl } = await import(
  pathToFileURL(`${process.env.FETCHWELL_NODE_MODULES}/firecrawl-v4/dist/index.js`),
);

const apiUrl = process.env.FETCHWELL_URL;
const client = new Firecrawl({ apiUrl, apiKey: process.env.FETCHWELL_TOKEN });
const shop = "http://shop.test/";

async function fails(status, words, call) {
  await assert.rejects(call, (error) => {
    assert.equal(error.status, status, error.message);
    assert.ok(error.message.includes(words), error.message);
    return true;
  });
}

const page = await client.scrape(shop, { formats: ["markdown", "html", "rawHtml", "links"], maxAge: 0, timeout: 30_000 });
assert.ok(page.markdown.includes("[hats](http://shop.test/hats?size=l)"), page.markdown);
assert.ok(page.html.includes('<p id="intro">') && page.rawHtml.includes("<script>"));
assert.ok(page.links.includes("http://shop.test/about"));
assert.equal(page.metadata.title, "The shop");
assert.equal(page.metadata.sourceURL, shop);
assert.equal(page.metadata.statusCode, 200);
const part = await client.scrape(shop, { includeTags: ["#intro"], excludeTags: ["a"] });
assert.ok(part.markdown.startsWith("We sell") && !part.markdown.includes("hats"), part.markdown);
assert.equal((await client.scrape("http://shop.test/missing")).metadata.statusCode, 404);

await fails(400, "screenshot", () => client.scrape(shop, { formats: ["screenshot"] }));
await fails(400, "waitFor", () => client.scrape(shop, { waitFor: 500 }));
await fails(400, "url is refused", () => client.scrape("http://10.0.0.1/"));
await fails(403, "robots.txt", () => client.scrape("http://private.test/"));
await fails(408, "not fetched", () => client.scrape("http://slow.test/", { timeout: 1_000 }));
await fails(501, "not implemented", () => client.startCrawl(shop, { limit: 1 }));
const stranger = new Firecrawl({ apiUrl, apiKey: `fw_${"a".repeat(43)}` });
await fails(401, "token", () => stranger.scrape(shop));

const good = Array.from({ length: 120 }, (_, number) => `http://shop.test/list/${number}`);
const bad = ["http://private.test/1", "http://down.test/"];
const job = await client.batchScrape([...good, ...bad], { options: { formats: ["markdown"] }, pollInterval: 1, timeout: 120 });
assert.deepEqual([job.status, job.total, job.completed, job.data.length], ["completed", 122, 122, 120]);
assert.deepEqual(new Set(job.data.map((document) => document.metadata.sourceURL)), new Set(good));

const started = await client.startBatchScrape([...good, ...bad, "ftp://shop.test/"], { ignoreInvalidURLs: true });
assert.deepEqual(started.invalidURLs, ["ftp://shop.test/"]);
assert.ok(started.url.startsWith(apiUrl), started.url);
let state;
do {
  state = await client.getBatchScrapeStatus(started.id, { autoPaginate: false });
} while (state.status === "scraping");
assert.ok(state.data.length <= 100 && state.next.startsWith(apiUrl), state.next);
const told = await client.getBatchScrapeErrors(started.id);
assert.deepEqual(told.robotsBlocked, [bad[0]]);
assert.deepEqual(told.errors.map((error) => error.url), [bad[1]]);

const waiting = await client.startBatchScrape(good.map((url) => url.replace("shop", "slow")));
assert.equal(await client.cancelBatchScrape(waiting.id), true);
assert.equal((await client.getBatchScrapeStatus(waiting.id)).status, "cancelled");

const links = (await client.map(shop)).links.map((link) => link.url);
assert.ok(links.includes("http://shop.test/about") && links.includes("http://shop.test/coats/1"), `${links}`);
const hats = await client.map(shop, { search: "hats", limit: 1, sitemap: "only" });
assert.deepEqual(hats.links.map((link) => link.url), ["http://shop.test/hats/1"]);

console.log("all held");
