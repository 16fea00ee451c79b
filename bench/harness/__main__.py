"""The command line."""

import argparse
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime

from . import fetchers, install, machine, results, scenarios


@dataclass
class Sizes:
    """How much is fetched, and how often."""

    rounds: int = 3
    speed_hosts: int = 100
    speed_pages: int = 20_000
    skew_hosts: int = 500
    skew_pages: int = 3_000
    hosts_counts: tuple = (100, 1_000, 10_000)
    hosts_pages: int = 20_000


# For tests of the harness: it says nothing about speed.
QUICK = Sizes(
    rounds=1,
    speed_hosts=20,
    speed_pages=400,
    skew_hosts=20,
    skew_pages=60,
    hosts_counts=(10, 100),
    hosts_pages=400,
)


def main():
    arguments = parse()
    sizes = sizes_of(arguments)
    # Without these two there is nothing to measure with.
    install.fetchwell()
    install.reqwest()
    chosen, notes = installed(wanted(arguments))
    began, load, older = datetime.now(UTC), machine.load(), results.older()
    versions = machine.versions(chosen)
    tables = []
    for name in arguments.scenario or scenarios.ALL:
        tables.append(scenarios.ALL[name](chosen, sizes))
        section = results.section(began, machine.machine(), load, sizes.rounds, versions, notes, tables)
        # After each scenario, so that a run that is cut short keeps what it has.
        if not (arguments.quick or arguments.print):
            results.write(section, older)
    print(section)


def parse():
    parser = argparse.ArgumentParser(prog="bench/run", description="Fetchwell beside its peers, on one simulated web.")
    # No `choices`: argparse holds an empty list against them.
    parser.add_argument("scenario", nargs="*", help=f"of {', '.join(scenarios.ALL)} [all]")
    names = ",".join(fetcher.name for fetcher in peers())
    parser.add_argument("--peers", metavar="NAMES", help=f"only these besides our own and the yardstick [{names}]")
    parser.add_argument("--pages", type=int, metavar="N", help="pages in each scenario")
    parser.add_argument("--rounds", type=int, metavar="N", help="how often each is run [3]")
    parser.add_argument("--quick", action="store_true", help="few pages, no peers, printed only: to try the harness")
    parser.add_argument("--print", action="store_true", help="print the tables and leave RESULTS.md as it is")
    arguments = parser.parse_args()
    for name in arguments.scenario:
        if name not in scenarios.ALL:
            parser.error(f"there is no scenario {name!r}: choose of {', '.join(scenarios.ALL)}")
    for name in (arguments.peers or "").split(","):
        if name and name not in names.split(","):
            parser.error(f"there is no peer {name!r}: choose of {names}")
    return arguments


def peers():
    return [fetcher for fetcher in fetchers.ALL if not fetcher.ours and fetcher.name != fetchers.YARDSTICK]


def sizes_of(arguments):
    sizes = QUICK if arguments.quick else Sizes()
    if arguments.pages:
        sizes.speed_pages = sizes.skew_pages = sizes.hosts_pages = arguments.pages
    if arguments.rounds:
        sizes.rounds = arguments.rounds
    return sizes


def wanted(arguments):
    """Our own and the yardstick always; of the peers all, or those that were named, or none."""
    if arguments.quick:
        names = []
    elif arguments.peers is not None:
        names = arguments.peers.split(",")
    else:
        names = [fetcher.name for fetcher in peers()]
    return [one for one in fetchers.ALL if one.ours or one.name == fetchers.YARDSTICK or one.name in names]


def installed(chosen):
    """Those that could be installed, and why the others could not."""
    ready, notes = [], []
    for fetcher in chosen:
        print(f"bench: installing {fetcher.title}", file=sys.stderr)
        try:
            fetcher.install()
            ready.append(fetcher)
        except (LookupError, OSError, subprocess.CalledProcessError) as fault:
            notes.append(f"{fetcher.title}: {fault}")
            print(f"bench: LEFT OUT: {notes[-1]}", file=sys.stderr)
    return ready, notes


main()
