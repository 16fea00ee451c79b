#!/usr/bin/env python3
"""How many seeds the simulated fleet needs to find each bug in plants/, and how fast it is.

    bench/fleet/measure.py                                # all of them; writes RESULTS-fleet.md; two hours on one core
    bench/fleet/measure.py --only two-probes,penalty-ignored --print
    bench/fleet/measure.py --speed                        # the speed, and a large fleet; half an hour and 10 GiB

Each patch plants one bug in the engine, the policy, the doors or the stores in memory. Its first lines say what the bug
is. The script applies one patch at a time to a clone of the last commit, builds the fleet, and runs seed 0, 1, 2, …
until a check fails. A bug that no check finds within --seeds seeds is not found. At the end, it runs the unpatched
program over the largest number of seeds that a bug needed, which must find nothing.

A patch that does not apply or build is an error. The script exits with 1 if a bug was not found, or if the unpatched
program failed.
"""

import argparse
import datetime
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
PLANTS = Path(__file__).resolve().parent / "plants"
RESULTS = TOP / "bench" / "RESULTS-fleet.md"
INTRO = """# What the simulated fleet finds

The [simulated fleet](../CONTRIBUTING.md#the-simulated-fleet) runs many machines on one simulated clock.
[README.md](README.md#planted-bugs) says how to repeat this.

"""
PLANTED = "Planted bugs"
SPEED = "Speed and scale"
HISTORY = "History"
# 64 machines, 100,000 sites and 10 million URLs.
SCALE = ["64", "100000", "10000000"]
LEAST_SEEDS_WITHOUT_A_BUG = 1_000
MAX_CELL = 110


@dataclass
class Outcome:
    """What a series of seeds found: the seeds that were run, and the first failure."""

    tried: int
    failure: str | None
    took_s: float


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--only", help="only these plants, such as two-probes,penalty-ignored")
    arguments.add_argument("--seeds", type=int, default=10_000, help="the most seeds per bug [default: 10000]")
    arguments.add_argument("--limit", type=int, default=1_800, metavar="SECONDS", help="the longest time per bug [default: 1800]")
    arguments.add_argument("--print", action="store_true", help="leave RESULTS-fleet.md as it is")
    arguments.add_argument("--speed", action="store_true", help="measure only how fast it is")
    arguments.add_argument("--scale", nargs=3, default=SCALE, metavar=("MACHINES", "SITES", "URLS"), help="the large fleet of --speed")
    given = arguments.parse_args()
    if given.speed:
        return speed(given)
    plants = {path.stem: path for path in sorted(PLANTS.glob("*.patch"))}
    if given.only:
        plants = {name: plants[name] for name in given.only.split(",")}
    target = Path(os.environ.get("CARGO_TARGET_DIR", TOP / "target"))
    # Always the same folder, so that cargo can use what it compiled before.
    clone = target / "bench" / "fleet"
    shutil.rmtree(clone, ignore_errors=True)
    subprocess.run(["git", "clone", "--quiet", "--shared", TOP, clone], check=True)
    commit = said(clone, "git", "rev-parse", "--short", "HEAD")
    outcomes = {}
    for name, path in plants.items():
        outcomes[name] = outcome = measure(clone, target, path, given.seeds, given.limit)
        print(row(path, outcome), file=sys.stderr, flush=True)
    needed = [outcome.tried for outcome in outcomes.values() if outcome.failure]
    seeds = max([LEAST_SEEDS_WITHOUT_A_BUG, *needed])
    build(clone, target)
    unpatched = run(target, seeds, given.limit)
    report = "\n".join(describe(plants, outcomes, unpatched, given.seeds, commit))
    print(report)
    if not given.print:
        write(PLANTED, report, f"{len(needed)} of {len(plants)} found, the last one after {max(needed, default=0):,} seeds", commit)
    if len(needed) < len(plants) or unpatched.failure:
        sys.exit(1)


def speed(given: argparse.Namespace) -> None:
    """Measures the program as it is here, not in a clone."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", TOP / "target"))
    build(TOP, target)
    commit = said(TOP, "git", "rev-parse", "--short", "HEAD")
    fleet = str(target / "release" / "fleet")
    lines = said(TOP, fleet, "--speed").splitlines()
    began = time.monotonic()
    # Linux has the largest memory of a child in KiB.
    lines += said(TOP, fleet, "--scale", *given.scale).splitlines()
    memory_gib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    minutes = (time.monotonic() - began) / 60
    report = "\n".join([
        f"Made by `bench/fleet/measure.py --speed` on {datetime.date.today()}, at {commit}, on one core. No faults happen; all checks hold.",
        "",
        *(f"- {line}." for line in lines),
        "",
        f"The last one took {minutes:.0f} minutes and {memory_gib:.1f} GiB, with the time to queue the URLs.",
    ])
    print(report)
    if not given.print:
        write(SPEED, report, "speed and scale measured", commit)


def measure(clone: Path, target: Path, patch: Path, seeds: int, limit_s: int) -> Outcome:
    """Plants a bug, looks for it, and removes it again."""
    subprocess.run(["git", "apply", patch], cwd=clone, check=True)
    build(clone, target)
    outcome = run(target, seeds, limit_s)
    subprocess.run(["git", "apply", "--reverse", patch], cwd=clone, check=True)
    return outcome


def build(clone: Path, target: Path) -> None:
    # Each patch changes a few lines, so most of a crate can be kept.
    environment = os.environ | {"CARGO_INCREMENTAL": "1", "CARGO_TARGET_DIR": str(target)}
    command = ["cargo", "build", "--quiet", "--locked", "--release", "--package", "fetchwell-fleet"]
    built = subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True)
    if built.returncode:
        sys.exit(f"it does not build:\n{built.stderr}")


def run(target: Path, seeds: int, limit_s: int) -> Outcome:
    """Runs seeds until one fails. A series that takes too long counts as one that found nothing."""
    command = [target / "release" / "fleet", "--first", "0", "--seeds", str(seeds), "--fail-fast"]
    began = time.monotonic()
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=limit_s)
    except subprocess.TimeoutExpired:
        return Outcome(0, None, time.monotonic() - began)
    took_s = time.monotonic() - began
    total = re.search(r"^seeds 0 to \d+: (\d+) of (\d+) failed", ran.stdout, re.MULTILINE)
    if not total:
        sys.exit(f"the fleet ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
    failure = re.search(r"^cargo run .*\n    (.+)$", ran.stdout, re.MULTILINE)
    return Outcome(int(total[2]), failure[1] if failure else None, took_s)


def describe(plants: dict[str, Path], outcomes: dict[str, Outcome], unpatched: Outcome, seeds: int, commit: str) -> list[str]:
    found = sum(outcome.failure is not None for outcome in outcomes.values())
    lines = [
        "How many seeds it takes to find each bug in [fleet/plants](fleet/plants). Each of them is planted in the code that runs in",
        "production or in a store of the fleet, one at a time.",
        "",
        f"Made by `bench/fleet/measure.py` on {datetime.date.today()}, at {commit}, with seeds from 0 upwards, at most {seeds:,} per bug.",
        f"{found} of {len(plants)} bugs were found. " + without_a_bug(unpatched),
        "",
        "| bug | seeds | check that found it |",
        "|---|---:|---|",
    ]
    return lines + [row(path, outcomes[name]) for name, path in plants.items()]


def without_a_bug(unpatched: Outcome) -> str:
    if unpatched.failure:
        return f"**The unpatched program failed with seed {unpatched.tried - 1}**: {unpatched.failure}."
    return f"The unpatched program passes the first {unpatched.tried:,} seeds."


def row(path: Path, outcome: Outcome) -> str:
    sentence = path.read_text().split("\n", 1)[0]
    name = f"[{path.stem}](fleet/plants/{path.name}): {sentence}"
    if outcome.failure is None:
        tried = f"{outcome.tried:,}" if outcome.tried else "it took too long"
        return f"| {name} | {tried} | **not found** |"
    check, text = re.fullmatch(r"(\w+) at [\d.]+ s: (.*)", outcome.failure).groups()
    text = text if len(text) <= MAX_CELL else text[:MAX_CELL].rsplit(" ", 1)[0] + " …"
    text = text.replace("|", "\\|")
    return f"| {name} | {outcome.tried:,} | {check}: {text} |"


def write(section: str, report: str, line: str, commit: str) -> None:
    """Replaces one section of the results, and adds a line to their history."""
    text = RESULTS.read_text() if RESULTS.exists() else ""
    parts = re.split(r"^## (.+)\n\n", text, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2]))
    sections[section] = report + "\n\n"
    sections[HISTORY] = f"- {datetime.date.today()}, {commit}: {line}\n" + sections.get(HISTORY, "")
    order = [name for name in (PLANTED, SPEED, HISTORY) if name in sections]
    RESULTS.write_text(INTRO + "".join(f"## {name}\n\n{sections[name]}" for name in order))


def said(folder: Path, *command: str) -> str:
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


main()
