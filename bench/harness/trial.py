"""One fetcher, one list, once: on a simulated web of its own."""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from . import measure
from .fetchers import Task
from .lists import named
from .origin import Origin
from .places import WORK

# A fetcher that takes longer has failed.
TIMEOUT_S = 1800


@dataclass(frozen=True, eq=False)
class Load:
    """What is to be fetched, and how."""

    # Pairs of host and path.
    pages: list
    concurrency: int
    # Between two requests to a host; 0 is no pace.
    delay_ms: int = 0
    # How much too soon a request may come, as the machine's timers are no better.
    tolerance_ms: int = 0

    def hosts(self):
        return sorted({host for host, _ in self.pages})


@dataclass
class Trial:
    """What it cost, what the origin saw, and what is wrong with it, if anything."""

    cost: measure.Cost
    seen: dict
    fault: str | None


def run(fetcher, load):
    # A folder of its own: a store that is still open elsewhere must not be in the way.
    folder = Path(tempfile.mkdtemp(prefix="trial-", dir=WORK))
    try:
        return run_in(folder, fetcher, load)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_in(folder, fetcher, load):
    hosts = load.hosts()
    origin = Origin(hosts, folder)
    with origin:
        task = Task(
            list=write_list(folder / "list.txt", load.pages, origin.port),
            named_list=write_list(folder / "named.txt", [(named(host), path) for host, path in load.pages], origin.port),
            folder=folder,
            port=origin.port,
            hosts=len(hosts),
            pages=len(load.pages),
            concurrency=load.concurrency,
            delay_ms=load.delay_ms,
        )
        cost = measure.run(fetcher.command(task), folder, TIMEOUT_S)
    seen = origin.judged(load.delay_ms, load.tolerance_ms)
    return Trial(cost, seen, cost.fault or miscount(seen, len(load.pages)))


def write_list(path, pages, port):
    path.write_text("".join(f"http://{host}:{port}{page}\n" for host, page in pages))
    return path


def miscount(seen, pages):
    """Why the work is not the same as that of the others."""
    if seen["distinct_pages"] != pages:
        return f"{seen['distinct_pages']} of {pages} pages were fetched"
    if seen["pages"] != pages or seen["others"]:
        return f"{seen['pages'] - pages + seen['others']} requests too many"
    return None
