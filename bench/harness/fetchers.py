"""Who is measured: how each is installed, named and called."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import install
from .places import DIST, PEERS, WORK


@dataclass(frozen=True)
class Task:
    """What a fetcher is to do."""

    # One URL a line.
    list: Path
    # The same with names in place of addresses.
    named_list: Path
    # Where it may write.
    folder: Path
    port: int
    hosts: int
    pages: int
    concurrency: int
    # Between two requests to a host; 0 is no pace.
    delay_ms: int


@dataclass(frozen=True)
class Fetcher:
    """A program that fetches a list."""

    name: str
    title: str
    # What it does besides fetching, for the reader of the table.
    does: str
    install: Callable[[], None]
    command: Callable[[Task], list]
    ours: bool = False
    # Whether it can keep a pace for each host.
    paces: bool = True


def fetchwell(task, *arguments):
    rate = 1000 / task.delay_ms if task.delay_ms else 0
    return [
        *[DIST / "fetchwell", "--quiet", "--store", f"sqlite:{task.folder / 'fetchwell.db'}"],
        *["--allow-private", "127.0.0.0/8", "--rate", f"{rate:g}", "--max-in-flight", str(task.concurrency)],
        *["fetch", f"@{task.list}", "--output", task.folder / "rows.jsonl", *arguments],
    ]


def engine(task):
    load = [task.port, task.pages, task.hosts, task.concurrency]
    return [DIST / "speed", "memory", *map(str, load)]


def arguments(task):
    return [task.list, str(task.concurrency), str(task.delay_ms)]


def crawlee(task):
    # Its delay leaves out hosts that are addresses.
    urls = task.named_list if task.delay_ms else task.list
    return ["node", WORK / "crawlee" / "crawl.js", urls, str(task.concurrency), str(task.delay_ms)]


YARDSTICK = "reqwest"

ALL = [
    Fetcher(
        YARDSTICK,
        "bare reqwest loop",
        "nothing else: the yardstick",
        install.reqwest,
        lambda task: [WORK / "reqwest/release/peer-reqwest", task.list, str(task.concurrency)],
        paces=False,
    ),
    Fetcher(
        "engine",
        "Fetchwell's engine, queue in memory",
        "robots.txt, breaker, address guard, leases; nothing is parsed or stored",
        install.engine,
        engine,
        ours=True,
        paces=False,
    ),
    Fetcher(
        "fetchwell-html",
        "`fetchwell fetch --format html`",
        "robots.txt, breaker, address guard; queue and pace on SQLite, each page synced to a file before it counts",
        install.fetchwell,
        lambda task: fetchwell(task, "--format", "html"),
        ours=True,
    ),
    Fetcher(
        "fetchwell",
        "`fetchwell fetch`",
        "the same; title, text and Markdown extracted into a row of JSON, with a SHA-256",
        install.fetchwell,
        fetchwell,
        ours=True,
    ),
    Fetcher(
        "spider",
        "spider",
        "robots.txt, links extracted; nothing is stored",
        install.spider,
        lambda task: [WORK / "spider/release/peer-spider", *arguments(task)],
    ),
    Fetcher(
        "colly",
        "Colly",
        "robots.txt; nothing is parsed or stored",
        install.colly,
        lambda task: [WORK / "colly/peer-colly", *arguments(task)],
    ),
    Fetcher(
        "crawlee",
        "Crawlee (HttpCrawler)",
        "robots.txt, sessions, queue in memory; nothing is parsed or stored",
        install.crawlee,
        crawlee,
    ),
    Fetcher(
        "scrapy",
        "Scrapy",
        "robots.txt, cookies, duplicate filter, queue in memory; nothing is parsed or stored",
        install.scrapy,
        lambda task: [WORK / "scrapy/bin/python", PEERS / "scrapy/crawl.py", *arguments(task)],
    ),
]
