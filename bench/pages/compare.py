"""What a page costs from the Redis list to the Kafka event: `fetchwell pages`, and the plain program of its design."""

import argparse
import contextlib
import datetime
import os
import signal
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import redis
from harness import lists, machine
from harness.origin import PAGE_BYTES, Origin
from harness.places import DIST, PEERS, TOP, WORK

QUEUE, DEAD = "crawler_queue", "page_fetcher_dlq"
IN_FLIGHT = 64
LOOK_EVERY_S = 0.05
GIVE_UP_AFTER_S = 300
RESULTS = TOP / "bench" / "RESULTS-pages.md"


class Trial:
    """One run of a program over all pages, on an empty Redis and a topic of its own."""

    def __init__(self, server, pages, hosts):
        self.server, self.pages, self.hosts = server, pages, hosts

    def measure(self, command, environment, instances=1, counting=False):
        """Processor seconds of all instances, wall seconds, and Redis commands a page if they are counted."""
        self.server.flushall()
        topic = f"bench_{time.monotonic_ns()}"
        with tempfile.TemporaryDirectory(dir=WORK) as folder:
            hosts = [lists.host(number) for number in range(self.hosts)]
            with Origin(hosts, Path(folder)) as origin:
                urls = [f"http://{host}:{origin.port}{path}" for host, path in lists.even(self.hosts, self.pages)]
                for start in range(0, len(urls), 10_000):
                    self.server.rpush(QUEUE, *urls[start : start + 10_000])
                monitor = Monitor(self.server) if counting else None
                environment = environment | {"PAGE_FETCHER_WEBPAGE_LOG_TOPIC": topic}
                started = time.monotonic()
                running = [start_program(command, environment, folder) for _ in range(instances)]
                wall_s = self.await_all(started, running)
                cpu_s = sum(processor_seconds(process.pid) for process in running)
                for process in running:
                    process.send_signal(signal.SIGTERM)
                for process in running:
                    process.wait(timeout=60)
        return cpu_s, wall_s, monitor.ended() / self.pages if monitor else None

    def await_all(self, started, running):
        """Until every page is in the cache, or a program has ended."""
        while time.monotonic() - started < GIVE_UP_AFTER_S:
            if self.server.dbsize() >= self.pages and self.cached() >= self.pages:
                return time.monotonic() - started
            if any(process.poll() for process in running):
                raise RuntimeError("a program ended too early: its own words are above")
            time.sleep(LOOK_EVERY_S)
        raise RuntimeError(f"{self.cached()} of {self.pages} pages after {GIVE_UP_AFTER_S} s")

    def cached(self):
        return sum(1 for _ in self.server.scan_iter("webpage:*", count=10_000))


class Monitor(threading.Thread):
    """Counts the commands that clients send; what scripts do with them is the server's own affair."""

    # Ours, by which the pages are watched.
    WATCHING = ("DBSIZE", "SCAN", "INFO")

    def __init__(self, server):
        super().__init__(daemon=True)
        self.seen, self.monitor = 0, server.monitor().__enter__()
        self.start()

    def run(self):
        # After its round nobody speaks any more; while one lasts we ask for the pages ourselves.
        with contextlib.suppress(redis.TimeoutError):
            for heard in self.monitor.listen():
                name = heard["command"].split(" ", 1)[0].upper()
                self.seen += heard["client_type"] != "lua" and name not in self.WATCHING

    def ended(self):
        return self.seen


def start_program(command, environment, folder):
    return subprocess.Popen(command, env=os.environ | environment, cwd=folder, stdout=subprocess.DEVNULL)


def processor_seconds(pid):
    """Of a process and its children so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def programs(redis_url, kafka):
    common = {
        "PAGE_FETCHER_REDIS_URL": redis_url,
        "PAGE_FETCHER_KAFKA_BOOTSTRAP_SERVERS": kafka,
        "PAGE_FETCHER_RATE_LIMIT_PER_SECOND": "0",
    }
    ours = [DIST / "fetchwell", "pages", "--metrics-listen", "127.0.0.1:0", "--allow-private", "127.0.0.0/8"]
    ours += ["--i-own-these-sites", "--max-in-flight", str(IN_FLIGHT), "--quiet"]
    peer = [WORK / "pages_asyncio/bin/python", PEERS / "pages_asyncio/main.py"]
    return {
        "fetchwell pages": (ours, common),
        "asyncio, httpx, redis, aiokafka": (peer, common | {"PAGE_FETCHER_CONCURRENCY": str(IN_FLIGHT)}),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--peer-pages", type=int, default=4_000)
    parser.add_argument("--counted-pages", type=int, default=2_000)
    parser.add_argument("--hosts", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--print", action="store_true", help="write no file")
    options = parser.parse_args()
    redis_url, kafka = os.environ["FETCHWELL_TEST_REDIS_URL"], os.environ["FETCHWELL_TEST_KAFKA_BOOTSTRAP"]
    server = redis.Redis.from_url(redis_url)
    known = programs(redis_url, kafka)
    ours, peer = known
    figures = {ours: [], peer: [], "two": []}
    counted = Trial(server, options.counted_pages, options.hosts)
    commands = {
        ours: counted.measure(*known[ours], counting=True)[2],
        "two": counted.measure(*known[ours], instances=2, counting=True)[2],
        peer: counted.measure(*known[peer], counting=True)[2],
    }
    for _ in range(options.rounds):
        trial = Trial(server, options.pages, options.hosts)
        figures[ours].append(trial.measure(*known[ours]))
        figures["two"].append(trial.measure(*known[ours], instances=2))
        small = Trial(server, options.peer_pages, options.hosts)
        figures[peer].append(small.measure(*known[peer]))
    table = render(options, figures, commands, ours, peer)
    print(table)
    if not options.print:
        RESULTS.write_text(table)


def render(options, figures, commands, ours, peer):
    def middle(name, place, pages):
        return statistics.median(round_[place] / pages for round_ in figures[name])

    rows = []
    for label, name, pages in [
        (f"`{ours}`", ours, options.pages),
        (f"`{ours}`, two instances", "two", options.pages),
        (peer, peer, options.peer_pages),
    ]:
        cpu_us = middle(name, 0, pages) * 1e6
        wall_us = middle(name, 1, pages) * 1e6
        rows.append(f"| {label} | {cpu_us:,.0f} µs | {1e6 / cpu_us:,.0f} | {1e6 / wall_us:,.0f} | {commands[name]:.2f} |")
    ratio = middle(peer, 0, options.peer_pages) / middle(ours, 0, options.pages)
    date = datetime.date.today().isoformat()
    return "\n".join(
        [
            "# Pages: from the Redis list to the Kafka event",
            "",
            f"Made by `bench/pages/run` on {date}, on {machine.machine()}, load {machine.load()} at its end. Pages of",
            f"{PAGE_BYTES >> 10} KiB on {options.hosts} hosts, no pacing, {IN_FLIGHT} in flight, {options.pages:,} pages",
            f"({options.peer_pages:,} for the plain program), median of {options.rounds} rounds. Processor time is that of",
            "the program alone, its start included; Redis, Kafka and the origin run beside it.",
            "",
            "| | processor time a page | pages a processor second | pages a second | Redis commands a page |",
            "|---|---|---|---|---|",
            *rows,
            "",
            f"`{ours}` makes **{ratio:.1f} ×** as many pages of a processor second as the plain program (goal: 10).",
            "",
        ]
    )


if __name__ == "__main__":
    main()
