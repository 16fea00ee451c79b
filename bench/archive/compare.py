"""Our readers of archives and indexes beside others: what they find, and what it costs."""

import argparse
import json
import statistics
import subprocess
import sys
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path

from harness import install, machine, measure
from harness.places import DIST, PEERS, TOP, WORK
from harness.table import Table, mib

RESULTS = TOP / "bench" / "RESULTS-archive.md"
FOLDER = WORK / "archive"
OURS = DIST / "archive"
# What no reader can do without, by the fastest inflater there is.
INFLATE = 'libdeflate-gunzip -c "$1" >/dev/null && echo "it only inflates"'
FASTWARC = WORK / "fastwarc" / "release" / "peer-fastwarc"
PYTHON = WORK / "warcio" / "bin" / "python"
TIMEOUT_S = 1_800


def main():
    options = parse_options()
    build()
    tables = [speed(options), samples(options)]
    said = section(options, tables)
    print(said)
    if not options.print:
        RESULTS.write_text(said)


def parse_options():
    parser = argparse.ArgumentParser(prog="bench/archive/run", description=__doc__)
    parser.add_argument("--data", required=True, type=Path, help="a folder with `articles` (pages) and `warc` (samples)")
    parser.add_argument("--megabytes", type=int, default=1_000, help="how much each made input has when inflated")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--print", action="store_true", help="print the tables and leave RESULTS-archive.md as it is")
    return parser.parse_args()


def build():
    FOLDER.mkdir(parents=True, exist_ok=True)
    install.cargo_dist("--package", "fetchwell-bench-archive")
    install.cargo(PEERS / "fastwarc", "--target-dir", WORK / "fastwarc")
    if not PYTHON.exists():
        install.call([sys.executable, "-m", "venv", PYTHON.parents[1]])
    install.call([PYTHON, "-m", "pip", "install", "--quiet", "--requirement", PEERS / "warcio" / "requirements.txt"])


def speed(options):
    """Rounds in turns; what others find must be what we find, or nearly so."""
    content = options.megabytes * 1_000_000
    warc, index = FOLDER / "made.warc.gz", FOLDER
    warc_bytes, warc_stored = numbers(OURS, "make-warc", options.data, warc, content)
    index_bytes, index_stored, lines = numbers(OURS, "make-index", options.data, index, content)
    contests = {
        "WARC to HTTP body": [
            ("ours", [OURS, "read-warc", warc]),
            ("fastwarc 2.0 (crate)", [FASTWARC, warc]),
            ("warcio 1.8", [PYTHON, PEERS / "warcio" / "read.py", warc]),
            ("libdeflate-gunzip", ["sh", "-c", INFLATE, "sh", warc]),
        ],
        "index to batches": [
            ("ours", [OURS, "batch", index]),
            ("the design's Python loop", [PYTHON, PEERS / "design" / "batch.py", index]),
        ],
    }
    about = (
        f"Processor time, user and system. The archive has {warc_bytes:,} bytes ({warc_stored:,} stored), the index "
        f"{index_bytes:,} bytes ({index_stored:,} stored) in {lines:,} lines, of which 40 % are wanted. "
        "*× ours* is the median of each round's own ratio: how many times longer another takes."
    )
    table = Table("Speed", about, ["what", "who", "CPU", "MB/s", "lines/s", "× ours", "peak memory", "found"])
    for what, contestants in contests.items():
        costs = measured(contestants, options.rounds)
        size = warc_bytes if what.startswith("WARC") else index_bytes
        for who, (seconds, peak_kib, found) in costs.items():
            cpu = statistics.median(seconds)
            ratio = statistics.median(theirs / own for theirs, own in zip(seconds, costs["ours"][0]))
            a_second = f"{lines / cpu:,.0f}" if what.startswith("index") else ""
            table.add(what, who, f"{cpu:.2f} s", f"{size / cpu / 1e6:,.0f}", a_second, f"{ratio:.2f}", mib(peak_kib), found)
    return table


def measured(contestants, rounds):
    """For each name its seconds a round, its largest memory and what it said."""
    costs = {who: ([], 0, "") for who, _ in contestants}
    for _ in range(rounds):
        for who, command in contestants:
            cost = measure.run([str(part) for part in command], FOLDER, TIMEOUT_S)
            if cost.fault:
                raise SystemExit(f"{who}: {cost.fault}")
            seconds, peak_kib, _ = costs[who]
            seconds.append(cost.cpu_s)
            costs[who] = (seconds, max(peak_kib, cost.peak_kib), measure.last_line(FOLDER / "said.txt"))
    return costs


def samples(options):
    about = (
        "What became of each record of files that others made. *same* counts records that are the same in ours, by type, "
        "address, and length and SHA-1 of the decoded body. A reader that stopped says why."
    )
    columns = ["sample", "ok", "truncated", "malformed", "skipped", "warcio 1.8", "same", "FastWARC 1.1 (Python)", "same", "fastwarc 2.0 (crate)"]
    table = Table("Samples", about, columns)
    for file in sorted((options.data / "warc").glob("*.warc*")):
        *ours, counts = values([OURS, "sample", file])
        cells = [str(count) for count in counts]
        for reader in ("warcio", "fastwarc"):
            theirs = values([PYTHON, PEERS / "warcio" / "sample.py", reader, file])
            records = [record for record in theirs if isinstance(record, list)]
            same = sum((Counter(map(key, records)) & Counter(map(key, filter(None, ours)))).values())
            faults = [plain(fault)[:60] for fault in theirs if isinstance(fault, str)]
            cells += [f"{len(records)}" + "".join(f", then {fault}" for fault in faults), str(same)]
        crate = subprocess.run([FASTWARC, file], capture_output=True, text=True).stdout.strip()
        table.add(file.name, *cells, crate.split(" records")[0] + (", faults" if "fault" in crate else ""))
    return table


def plain(fault):
    """Some faults quote the bytes that they are about."""
    return " ".join("".join(c for c in fault if c.isascii() and (c.isprintable() or c.isspace())).split())


def key(record):
    kind, uri, length, digest = record
    return (kind or "").lower(), (uri or "").strip("<>").replace(" ", "%20"), length, digest


def values(command):
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def numbers(*command):
    done = subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True)
    return [int(word) for word in done.stdout.split()]


def section(options, tables):
    facts = [
        f"Made by `bench/archive/run` on {datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC, at {machine.said('git', 'describe', '--always', '--dirty')}, {machine.rust()}.",
        f"Machine: {machine.machine()}; load when it ended: {machine.load()}.",
        f"Rounds: {options.rounds}, in turns; the figures are medians.",
    ]
    head = "# What reading archives costs\n\n[README.md](README.md) says what is measured and how to read it.\n\n"
    return head + "\n".join(f"- {fact}" for fact in facts) + "\n\n" + "\n".join(table.markdown() for table in tables)


if __name__ == "__main__":
    main()
