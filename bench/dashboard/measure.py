#!/usr/bin/env python3
"""How long each page of the dashboard takes, where 10,000 sites and 1,000,000 messages are.

    cargo build-dist
    bench/dashboard/measure.py target/dist/fetchwell

It starts `fetchwell serve` in a folder of its own, fills it by its API (every site is paused, so that all
messages wait; a tenth of them has a deadline, which passes for some, so that there are failures), starts it again with
a small window, so that the pages are measured and not the flow that finds ten thousand sites paused, logs in and
asks for each page several times (`--busy`: without that second start). A page's time is from the request to its last byte, on loopback. Prints a table, and exits with
1 where a page took more than 200 ms in the middle.
"""

import argparse
import http.client
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

GOAL_MS = 200
TIMES = 11
BATCH = 1_000
WORKERS = 4
SMALL_WINDOW = "16"


class Service:
    """A `fetchwell serve` on an empty SQLite file."""

    def __init__(self, program: str, folder: Path) -> None:
        self.program, self.folder = program, folder
        self._start({})
        for line in self.process.stdout:
            if found := re.search(r"(fw_\S+)", line):
                self.token = found[1]
                return

    def restart(self, environment: dict[str, str]) -> None:
        self.process.terminate()
        self.process.wait()
        self._start(environment)

    def _start(self, environment: dict[str, str]) -> None:
        flags = ["--store", f"sqlite:{self.folder / 'bench.db'}", "serve", "--listen", "127.0.0.1:0"]
        always = {"FETCHWELL_RETRIEVER__CALLER_RATE": "0", "FETCHWELL_RETRIEVER__DEADLINE": "1d", "PATH": "/usr/bin"}
        log = self.folder / "log.txt"
        self.process = subprocess.Popen(
            [self.program, *flags], cwd=self.folder, env=always | environment, stdout=subprocess.PIPE, stderr=log.open("w"), text=True
        )
        while not (found := re.search(r"listening on http://(\S+?);", log.read_text())):
            if self.process.poll() is not None:
                sys.exit(f"it does not come up: {log.read_text()}")
            time.sleep(0.1)
        self.address = found[1]

    def ask(self, method: str, path: str, body: str | None = None, headers: dict[str, str] = {}) -> tuple[http.client.HTTPResponse, bytes, float]:
        connection = http.client.HTTPConnection(self.address, timeout=600)
        began = time.perf_counter()
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
        took = (time.perf_counter() - began) * 1_000
        connection.close()
        return answer, content, took

    def api(self, path: str, body: object) -> object:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        answer, content, _ = self.ask("POST", path, json.dumps(body), headers)
        if answer.status != 200:
            sys.exit(f"{path}: {answer.status} {content[:500]}")
        return json.loads(content)


def fill(service: Service, sites: int, messages: int) -> None:
    def pause(number: int) -> None:
        service.api(f"/sites/site-{number}.test/pause", {})

    def send(batch: int) -> None:
        numbers = range(batch * BATCH, (batch + 1) * BATCH)
        many = [
            {"url": f"http://site-{n % sites}.test/page/{n}", "retailer": f"retailer-{n % 4}", "correlation_id": f"c-{n}"}
            for n in numbers
        ]
        for message in many[::10]:
            message["deadline"] = "1s"
        service.api("/fetch/batch", {"messages": many})

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(pause, range(sites)))
        list(pool.map(send, range(messages // BATCH)))
    while failed(service) < messages // 100:
        time.sleep(1)


def failed(service: Service) -> float:
    _, metrics, _ = service.ask("GET", "/metrics")
    return float(re.search(rb'fetchwell_ledger_messages\{state="done"\} (\S+)', metrics)[1])


def log_in(service: Service) -> dict[str, str]:
    body = urllib.parse.urlencode({"token": service.token})
    headers = {"Origin": f"http://{service.address}", "Content-Type": "application/x-www-form-urlencoded"}
    answer, content, _ = service.ask("POST", "/dashboard/login", body, headers)
    if answer.status != 303:
        sys.exit(f"no login: {answer.status} {content[:500]}")
    return {"Cookie": answer.getheader("set-cookie").split(";")[0]}


def pages(service: Service, cookie: dict[str, str]) -> dict[str, str]:
    _, listed, _ = service.ask("GET", "/dashboard/messages?state=failed", None, cookie)
    message = re.search(rb"/dashboard/messages/(msg_\w+|[\w-]{20,})\"", listed)[1].decode()
    return {
        "Overview": "/",
        "Sites": "/dashboard/sites",
        "Sites: by name": "/dashboard/sites?sort=name",
        "Sites: most 429 first": "/dashboard/sites?sort=limited",
        "Sites: paused": "/dashboard/sites?is=paused",
        "Sites: text that few have": "/dashboard/sites?text=site-777",
        "Sites: text that none has": "/dashboard/sites?text=nowhere",
        "One site": "/dashboard/sites/site-77.test",
        "Messages": "/dashboard/messages",
        "Messages: queued": "/dashboard/messages?state=queued",
        "Messages: completed (none)": "/dashboard/messages?state=completed",
        "Messages: failed": "/dashboard/messages?state=failed",
        "Messages: of one site": "/dashboard/messages?site=site-77.test",
        "Messages: text in few URLs": "/dashboard/messages?text=page/777777",
        "Messages: text in no URL": "/dashboard/messages?text=nowhere",
        "One message": f"/dashboard/messages/{message}",
        "Dead letters": "/dashboard/dead-letters",
        "Articles": "/dashboard/articles",
        "Articles: a search": "/dashboard/articles?text=nowhere",
        "Common Crawl": "/dashboard/common-crawl",
        "System": "/dashboard/system",
    }


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("program")
    arguments.add_argument("--sites", type=int, default=10_000)
    arguments.add_argument("--messages", type=int, default=1_000_000)
    arguments.add_argument("--busy", action="store_true", help="while the flow is at full work")
    given = arguments.parse_args()
    missed = []
    with tempfile.TemporaryDirectory(prefix="fetchwell-bench-") as folder:
        service = Service(str(Path(given.program).resolve()), Path(folder))
        try:
            began = time.perf_counter()
            fill(service, given.sites, given.messages)
            print(f"filled in {time.perf_counter() - began:.0f} s", file=sys.stderr)
            if not given.busy:
                service.restart({"FETCHWELL_WINDOW": SMALL_WINDOW, "FETCHWELL_MAX_IN_FLIGHT": "1"})
            cookie = log_in(service)
            print("| page | middle, ms | longest, ms | bytes |\n|---|---|---|---|")
            for name, path in pages(service, cookie).items():
                took = []
                for _ in range(TIMES):
                    answer, content, milliseconds = service.ask("GET", path, None, cookie)
                    if answer.status != 200:
                        sys.exit(f"{path}: {answer.status} {content[:500]}")
                    took.append(milliseconds)
                middle = statistics.median(took)
                print(f"| {name} | {middle:.1f} | {max(took):.1f} | {len(content):,} |", flush=True)
                if middle > GOAL_MS:
                    missed.append(name)
        finally:
            service.process.terminate()
            service.process.wait()
    if missed:
        sys.exit(f"over {GOAL_MS} ms: {', '.join(missed)}")


main()
