// Crawlee's HttpCrawler on a list of URLs.
//
// Usage: crawl.js LIST CONCURRENCY DELAY_MS. It fails unless every URL gives a page.

import dns from 'node:dns';
import { readFileSync } from 'node:fs';
import { argv, exit } from 'node:process';

import { Configuration, HttpCrawler, LogLevel, log } from '@crawlee/http';

const [path, concurrency, delayMs] = [argv[2], Number(argv[3]), Number(argv[4])];
const urls = readFileSync(path, 'ascii').trim().split('\n');
log.setLevel(LogLevel.ERROR);

// Crawlee's delay leaves out hosts that are addresses, so in the paced run the hosts have names: all are this machine.
dns.lookup = (_host, options, answer) => {
  const found = typeof options === 'function' ? options : answer;
  if (options?.all) found(null, [{ address: '127.0.0.1', family: 4 }]);
  else found(null, '127.0.0.1', 4);
};

let fetched = 0;
const crawler = new HttpCrawler(
  {
    respectRobotsTxtFile: true,
    sameDomainDelaySecs: delayMs / 1000,
    minConcurrency: concurrency,
    maxConcurrency: concurrency,
    requestHandler: ({ response, body }) => {
      if (response.statusCode === 200 && body.length > 0) fetched += 1;
    },
  },
  // The queue is in memory, as that of the other peers.
  new Configuration({ persistStorage: false }),
);
await crawler.run(urls);
if (fetched !== urls.length) {
  console.error(`${fetched} of ${urls.length} URLs were fetched`);
  exit(1);
}
