"""The Python client of Firecrawl, unmodified, against a service on the simulated web of `mod.rs`."""

import os

from firecrawl import Firecrawl
from firecrawl.v2.types import PaginationConfig
from firecrawl.v2.utils.error_handler import (
    BadRequestError,
    RequestTimeoutError,
    UnauthorizedError,
    WebsiteNotSupportedError,
)

URL = os.environ["FETCHWELL_URL"]
SHOP = "http://shop.test/"


def fails(error, call, *words):
    try:
        call()
    except error as failed:
        assert all(word in str(failed) for word in words), failed
        return
    raise AssertionError(f"no {error.__name__}")


def scrape(client):
    page = client.scrape(SHOP, formats=["markdown", "html", "rawHtml", "links"])
    assert "[hats](http://shop.test/hats?size=l)" in page.markdown, page.markdown
    assert "About us" not in page.markdown and "<script>" in page.raw_html
    assert 'href="http://shop.test/hats?size=l"' in page.html and "alert" not in page.html
    assert "http://shop.test/about" in page.links, page.links
    metadata = page.metadata
    assert (metadata.title, metadata.status_code, metadata.source_url) == ("The shop", 200, SHOP), metadata
    assert metadata.cache_state == "miss", metadata
    assert client.scrape(SHOP, formats=["markdown", "html", "rawHtml", "links"]).metadata.cache_state == "hit"
    part = client.scrape(SHOP, only_main_content=False, exclude_tags=[".ad", "footer"], max_age=0, timeout=30_000)
    assert "About us" in part.markdown and "Buy two" not in part.markdown, part.markdown
    missing = client.scrape("http://shop.test/missing").metadata
    assert missing.status_code == 404 and "404" in missing.error, missing


def errors(client):
    fails(BadRequestError, lambda: client.scrape(SHOP, formats=["screenshot"]), "screenshot", "not supported")
    fails(BadRequestError, lambda: client.scrape(SHOP, actions=[{"type": "wait", "milliseconds": 1}]), "actions")
    fails(BadRequestError, lambda: client.scrape(SHOP, mobile=True), "mobile")
    fails(BadRequestError, lambda: client.scrape("http://10.0.0.1/"), "url is refused")
    fails(WebsiteNotSupportedError, lambda: client.scrape("http://private.test/"), "robots.txt")
    fails(RequestTimeoutError, lambda: client.scrape("http://slow.test/", timeout=1_000), "not fetched")
    stranger = Firecrawl(api_key="fw_" + "a" * 43, api_url=URL)
    fails(UnauthorizedError, lambda: stranger.scrape(SHOP), "token")
    fails(Exception, lambda: client.crawl(SHOP, limit=1), "not implemented")


def batch(client):
    good = [f"http://shop.test/list/{number}" for number in range(120)]
    urls = good + ["http://private.test/1", "http://shop.test/missing"]
    job = client.batch_scrape(urls, formats=["markdown"], poll_interval=1, wait_timeout=120)
    assert (job.status, job.total, job.completed) == ("completed", 122, 122), job
    # More than one page: the client follows `next`.
    assert {page.metadata.source_url for page in job.data} == {*good, "http://shop.test/missing"}
    assert len(job.data) == 121 and job.next is None
    assert all(page.markdown for page in job.data if page.metadata.status_code == 200)

    started = client.start_batch_scrape(good, formats=["links"])
    assert started.url.startswith(URL) and started.id in started.url, started
    while client.get_batch_scrape_status(started.id).status == "scraping":
        pass
    first = client.get_batch_scrape_status(started.id, pagination_config=PaginationConfig(auto_paginate=False))
    assert len(first.data) == 100 and first.next.startswith(URL), first.next
    second = client.get_batch_scrape_status_page(first.next)
    assert len(second.data) == 20 and second.next is None

    failed = client.start_batch_scrape(["http://private.test/1", "http://down.test/", SHOP])
    while client.get_batch_scrape_status(failed.id).status == "scraping":
        pass
    told = client.get_batch_scrape_errors(failed.id)
    assert told.robots_blocked == ["http://private.test/1"], told
    assert [error["url"] if isinstance(error, dict) else error.url for error in told.errors] == ["http://down.test/"]


def cancel(client):
    waiting = client.start_batch_scrape([f"http://slow.test/{number}" for number in range(500)])
    assert client.cancel_batch_scrape(waiting.id)
    assert client.get_batch_scrape_status(waiting.id).status == "cancelled"


def map_site(client):
    links = {link.url for link in client.map(SHOP).links}
    assert {"http://shop.test/about", "http://shop.test/hats/1", "http://shop.test/coats/1"} <= links, links
    hats = client.map(SHOP, search="hats", limit=1, sitemap="only", include_subdomains=False)
    assert [link.url for link in hats.links] == ["http://shop.test/hats/1"], hats


client = Firecrawl(api_key=os.environ["FETCHWELL_TOKEN"], api_url=URL)
for part in (scrape, errors, batch, cancel, map_site):
    part(client)
print("all held")
