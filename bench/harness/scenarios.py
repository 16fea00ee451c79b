"""What is asked of the fetchers, and the table that comes of it."""

import sys
from statistics import median

from . import lists, trial
from .fetchers import YARDSTICK
from .table import Table, mib, times
from .trial import Load

CONCURRENCY = 64


def speed(fetchers, sizes):
    """Without a pace: what does a page cost?"""
    load = Load(lists.even(sizes.speed_hosts, sizes.speed_pages), CONCURRENCY)
    trials = interleaved(fetchers, [load], sizes.rounds)
    table = Table(
        "Speed",
        f"{sizes.speed_pages:,} pages of 10 KiB on {sizes.speed_hosts:,} hosts, no pace, {CONCURRENCY} requests at once. "
        f"Processor time of the fetcher a page; times the bare loop's.",
        ["fetcher", "CPU a page", "× bare loop", "peak memory", "wall time", "robots.txt", "what it does besides"],
    )
    bare = trials[YARDSTICK, load]
    yardstick = cpu_us_a_page(bare) if is_valid(bare) else None
    for fetcher in fetchers:
        mine = trials[fetcher.name, load]
        if not is_valid(mine):
            table.add_fault(fetcher.title, fault_of(mine))
            continue
        cpu_us = cpu_us_a_page(mine)
        table.add(
            fetcher.title,
            f"{cpu_us:.0f} µs",
            times(cpu_us, yardstick),
            mib(peak_kib(mine)),
            f"{wall_s(mine):.1f} s",
            f"{mine[0].seen['robots']:,}",
            fetcher.does,
        )
    return table


# Ten requests a second to each host. The machine's timers may be late by some of that.
DELAY_MS = 100
TOLERANCE_MS = 10


def skew(fetchers, sizes):
    """With a pace for each host, and some hosts far larger than others: how close to the least possible time?"""
    load = Load(
        lists.skewed(sizes.skew_hosts, sizes.skew_pages),
        concurrency=sizes.skew_hosts,
        delay_ms=DELAY_MS,
        tolerance_ms=TOLERANCE_MS,
    )
    fetchers = [fetcher for fetcher in fetchers if fetcher.paces]
    trials = interleaved(fetchers, [load], sizes.rounds)
    # robots.txt and its page may come together; then one interval for each further page.
    least_s = (lists.largest(load.pages) - 1) * DELAY_MS / 1000
    table = Table(
        "Skew",
        f"{len(load.pages):,} pages on {sizes.skew_hosts:,} hosts (Zipf), one request every {DELAY_MS} ms to each host. "
        f"The largest host has {lists.largest(load.pages):,} pages, so nobody can be done before {least_s:.1f} s. "
        f"Time is from the first request to the last, as the origin saw them; *too soon* is a request that came more "
        f"than {TOLERANCE_MS} ms before its host's interval was over (a page right after its robots.txt may).",
        ["fetcher", "time", "× least", "too soon", "CPU a page", "peak memory"],
    )
    for fetcher in fetchers:
        mine = trials[fetcher.name, load]
        if not is_valid(mine):
            table.add_fault(fetcher.title, fault_of(mine))
            continue
        lasted_s = median(one.seen["lasted_s"] for one in mine)
        too_soon = median(one.seen["too_soon"] for one in mine)
        table.add(
            fetcher.title,
            f"{lasted_s:.1f} s",
            times(lasted_s, least_s),
            f"{too_soon:,.0f} of {mine[0].seen['gaps_judged']:,}",
            f"{cpu_us_a_page(mine):.0f} µs",
            mib(peak_kib(mine)),
        )
    return table


MANY_HOSTS_FETCHERS = (YARDSTICK, "fetchwell", "scrapy")
# The run that memory is compared with has a part of the pages.
FEWER = 20


def hosts(fetchers, sizes):
    """The same number of pages on ever more hosts: what does a host cost, and what a URL that waits?"""
    fetchers = [fetcher for fetcher in fetchers if fetcher.name in MANY_HOSTS_FETCHERS]
    few_pages = sizes.hosts_pages // FEWER
    few = Load(lists.even(sizes.hosts_counts[0], few_pages), CONCURRENCY)
    counts = [count for count in sizes.hosts_counts if count <= sizes.hosts_pages]
    loads = {count: Load(lists.even(count, sizes.hosts_pages), CONCURRENCY) for count in counts}
    trials = interleaved(fetchers, [few, *loads.values()], sizes.rounds)
    table = Table(
        "Many hosts",
        f"{sizes.hosts_pages:,} pages of 10 KiB, no pace, {CONCURRENCY} requests at once. Each host costs a connection, "
        "and a robots.txt where that is read. *Memory a URL* is what each page adds to the peak of a run with only "
        f"{few_pages:,} pages on {sizes.hosts_counts[0]:,} hosts: what is kept of a URL and of its host.",
        ["fetcher", "hosts", "CPU a page", "requests", "CPU a request", "peak memory", "memory a URL"],
    )
    for fetcher in fetchers:
        for count, load in loads.items():
            mine, least = trials[fetcher.name, load], trials[fetcher.name, few]
            if not is_valid(mine) or not is_valid(least):
                table.add_fault(fetcher.title, fault_of(mine) or fault_of(least), f"{count:,}")
                continue
            requests = mine[0].seen["pages"] + mine[0].seen["robots"]
            grown_kib = max(0, peak_kib(mine) - peak_kib(least))
            table.add(
                fetcher.title,
                f"{count:,}",
                f"{cpu_us_a_page(mine):.0f} µs",
                f"{requests:,}",
                f"{cpu_us_a_page(mine) * sizes.hosts_pages / requests:.0f} µs",
                mib(peak_kib(mine)),
                f"{grown_kib * 1024 / (sizes.hosts_pages - few_pages):,.0f} B",
            )
    return table


ALL = {"speed": speed, "skew": skew, "hosts": hosts}


def interleaved(fetchers, loads, rounds):
    """Every fetcher with every load, in turns: what disturbs the machine for a while disturbs all alike."""
    trials = {(fetcher.name, load): [] for fetcher in fetchers for load in loads}
    for number in range(1, rounds + 1):
        for load in loads:
            for fetcher in fetchers:
                one = trial.run(fetcher, load)
                trials[fetcher.name, load].append(one)
                fault = f" INVALID: {one.fault}" if one.fault else ""
                figures = f"{one.cost.cpu_s:.2f} s of CPU, {one.cost.wall_s:.1f} s, {one.cost.peak_kib >> 10} MiB"
                print(f"bench: round {number}: {fetcher.name}: {figures}{fault}", file=sys.stderr)
    return trials


def is_valid(trials):
    return fault_of(trials) is None


def fault_of(trials):
    return next((one.fault for one in trials if one.fault), None)


def cpu_us_a_page(trials):
    return median(one.cost.cpu_s * 1e6 / one.seen["pages"] for one in trials)


def peak_kib(trials):
    return median(one.cost.peak_kib for one in trials)


def wall_s(trials):
    return median(one.cost.wall_s for one in trials)
