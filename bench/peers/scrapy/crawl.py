"""Scrapy on a list of URLs.

Usage: crawl.py LIST CONCURRENCY DELAY_MS. Without a delay, that many requests at once; with a delay, one at a time to
each host. It fails unless every URL gives a page with 200.
"""

import sys

import scrapy
from scrapy.crawler import CrawlerProcess


class ListSpider(scrapy.Spider):
    """Fetches the list and counts what comes."""

    name = "list"
    fetched = 0

    def __init__(self, path):
        super().__init__()
        with open(path, encoding="ascii") as lines:
            self.urls = lines.read().split()

    async def start(self):
        for url in self.urls:
            yield scrapy.Request(url)

    def parse(self, response):
        self.fetched += response.status == 200 and len(response.body) > 0


def settings(concurrency, delay_ms):
    paced = delay_ms > 0
    return {
        "ROBOTSTXT_OBEY": True,
        "USER_AGENT": "bench",
        "CONCURRENT_REQUESTS": concurrency,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1 if paced else concurrency,
        "DOWNLOAD_DELAY": delay_ms / 1000,
        "RANDOMIZE_DOWNLOAD_DELAY": False,
        "LOG_LEVEL": "ERROR",
        "TELNETCONSOLE_ENABLED": False,
    }


def main():
    path, concurrency, delay_ms = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    process = CrawlerProcess(settings(concurrency, delay_ms))
    crawler = process.create_crawler(ListSpider)
    process.crawl(crawler, path)
    process.start()
    spider = crawler.spider
    if spider.fetched != len(spider.urls):
        sys.exit(f"{spider.fetched} of {len(spider.urls)} URLs were fetched")


main()
