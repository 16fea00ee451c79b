"""What a document costs a whole worker: a batch from RabbitMQ, ranges of an archive, text, a durable file."""

import argparse
import gzip
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
import urllib.request
from datetime import datetime, timezone
from pathlib import Path

from fastwarc.warc import ArchiveIterator, WarcRecordType
from harness import machine
from harness.places import DIST, PEERS, TOP, WORK
from harness.table import Table, mib

RESULTS = TOP / "bench" / "RESULTS-commoncrawl.md"
FOLDER = WORK / "commoncrawl"
ROOT = FOLDER / "archive"
CRAWL = "CC-BENCH-2026-46"
BROKER = os.environ["FETCHWELL_TEST_RABBITMQ_URL"]
METRICS = "127.0.0.1:9901"
LINES_A_BLOCK = 3_000
LOOK_EVERY_S = 0.1
GIVE_UP_AFTER_S = 1_200
OURS = "`fetchwell commoncrawl work`"
PLAIN = "requests, warcio, trafilatura"
FAST = "requests, FastWARC, resiliparse"


def main():
    options = parse_options()
    pages, content_bytes, stored_bytes = make_archive(options)
    server = subprocess.Popen([sys.executable, TOP / "bench/commoncrawl/range_server.py", ROOT], stdout=subprocess.PIPE, text=True)
    try:
        base = server.stdout.readline().strip()
        costs = {OURS: [], PLAIN: [], FAST: []}
        for _ in range(options.rounds):
            costs[OURS].append(ours(base, pages))
            costs[FAST].append(peer("fastwarc", base, min(options.peer_pages, pages)))
            costs[PLAIN].append(peer("warcio", base, min(options.peer_pages, pages)))
    finally:
        server.kill()
    said = render(options, pages, content_bytes, stored_bytes, costs)
    print(said)
    if not options.print:
        RESULTS.write_text(said)


def parse_options():
    parser = argparse.ArgumentParser(prog="bench/commoncrawl/run", description=__doc__)
    parser.add_argument("--data", required=True, type=Path, help="a folder with `articles` (pages) and `warc` (samples)")
    parser.add_argument("--megabytes", type=int, default=1_000, help="how much the archive has when inflated")
    parser.add_argument("--files", type=int, default=4, help="under so many names it is worked on")
    parser.add_argument("--peer-pages", type=int, default=1_500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--print", action="store_true", help="print the table and leave RESULTS-commoncrawl.md as it is")
    return parser.parse_args()


def make_archive(options):
    """One archive under several names, and the index of all its pages. Their number, and its size inflated and stored."""
    shutil.rmtree(ROOT, ignore_errors=True)
    (ROOT / "crawl-data").mkdir(parents=True)
    names = [f"crawl-data/{number:02}.warc.gz" for number in range(options.files)]
    made = ROOT / names[0]
    make = [DIST / "archive", "make-warc", options.data, made, str(options.megabytes * 1_000_000)]
    content_bytes, stored_bytes = map(int, subprocess.run(make, check=True, stdout=subprocess.PIPE, text=True).stdout.split())
    for name in names[1:]:
        os.link(made, ROOT / name)
    captures = list(html_captures(made))
    lines = sorted(line(name, capture) for name in names for capture in captures)
    write_index(ROOT / "cc-index" / "collections" / CRAWL / "indexes", lines)
    return len(lines), content_bytes, stored_bytes


def html_captures(path):
    """Place, length and address of each page."""
    with path.open("rb") as file:
        previous = None
        for record in ArchiveIterator(file, record_types=WarcRecordType.any_type, parse_http=False):
            if previous:
                yield previous[0], record.stream_pos - previous[0], previous[1]
            previous = None
            if record.headers.get("WARC-Type") == "response" and record.is_http:
                record.parse_http()
                if record.http_content_type in ("text/html", "application/xhtml+xml") and record.http_headers.status_code == 200:
                    previous = record.stream_pos, record.headers["WARC-Target-URI"]
    if previous:
        yield previous[0], path.stat().st_size - previous[0], previous[1]


def line(filename, capture):
    offset, length, url = capture
    fields = {"url": url, "mime": "text/html", "mime-detected": "text/html", "status": "200", "length": str(length)}
    fields |= {"offset": str(offset), "filename": filename, "charset": "UTF-8", "languages": "eng"}
    host, _, path = re.sub(r"^\w+://", "", url).partition("/")
    return f"{','.join(reversed(host.split('.')))})/{path.replace(' ', '%20')} 20261115120000 {json.dumps(fields)}\n"


def write_index(folder, lines):
    folder.mkdir(parents=True)
    offset = 0
    with (folder / "cdx-00000.gz").open("wb") as cdx, (folder / "cluster.idx").open("w") as cluster:
        for number, start in enumerate(range(0, len(lines), LINES_A_BLOCK), 1):
            block = lines[start : start + LINES_A_BLOCK]
            member = gzip.compress("".join(block).encode())
            cdx.write(member)
            cluster.write(" ".join(block[0].split(" ", 2)[:2]) + f"\tcdx-00000.gz\t{offset}\t{len(member)}\t{number}\n")
            offset += len(member)


def ours(base, pages):
    """Processor seconds of one worker over all pages, with what it held in memory along the way."""
    queue, folder = published(base, pages)
    command = [DIST / "fetchwell", "--allow-private", "127.0.0.0/8", "commoncrawl", "work", "--metrics-listen", METRICS]
    started = time.monotonic()
    with (folder / "said.txt").open("w") as said:
        worker = subprocess.Popen(command, cwd=folder, env=environment(base, queue), stdout=said, stderr=said)
    resident_kib = []
    while (done := records_done()) < pages:
        if worker.poll() is not None or time.monotonic() - started > GIVE_UP_AFTER_S:
            raise SystemExit(f"{done} of {pages} pages, then: {(folder / 'said.txt').read_text()[-500:]}")
        resident_kib.append((done / pages, status_kib(worker.pid, "VmRSS")))
        time.sleep(LOOK_EVERY_S)
    peak_kib, wall_s = status_kib(worker.pid, "VmHWM"), time.monotonic() - started
    worker.send_signal(signal.SIGTERM)
    _, code, usage = os.wait4(worker.pid, 0)
    worker.returncode = code
    documents = int(re.search(r"(\d+) documents written", (folder / "said.txt").read_text())[1])
    return usage.ru_utime + usage.ru_stime, wall_s, pages, documents, peak_kib, resident_kib


def peer(reader, base, pages):
    queue, folder = published(base, pages)
    command = [sys.executable, PEERS / "commoncrawl" / "worker.py", reader, base, queue, str(pages), "documents.jsonl.gz"]
    started = time.monotonic()
    worker = subprocess.Popen(command, cwd=folder, env=environment(base, queue), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    said = worker.stdout.read()
    _, code, usage = os.wait4(worker.pid, 0)
    worker.returncode = code
    if code != 0:
        raise SystemExit(f"{reader}: exit code {code}; run it by hand to see why: {command}")
    documents = int(re.search(r"(\d+) documents", said)[1])
    return usage.ru_utime + usage.ru_stime, time.monotonic() - started, pages, documents, usage.ru_maxrss, []


def published(base, pages):
    """A queue of its own with the batches of the first so many pages, and an empty folder."""
    queue, folder = f"bench_{time.monotonic_ns()}", FOLDER / "run"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    indexes = ROOT / "cc-index" / "collections" / CRAWL / "indexes"
    batch = [DIST / "fetchwell", "--allow-private", "127.0.0.0/8", "commoncrawl", "batch", "--crawl", CRAWL, "--metrics-listen", ""]
    batch += ["--cluster-idx", indexes / "cluster.idx", "--checkpoint", folder / "checkpoint", "--limit", str(pages)]
    subprocess.run(batch, cwd=folder, env=environment(base, queue), check=True, stdout=subprocess.DEVNULL)
    return queue, folder


def environment(base, queue):
    ours = {"RABBITMQ_CONNECTION_STRING": BROKER, "FETCHWELL_COMMONCRAWL__QUEUE": queue, "FETCHWELL_COMMONCRAWL__BASE": base}
    return os.environ | ours


def records_done():
    try:
        with urllib.request.urlopen(f"http://{METRICS}/metrics", timeout=5) as answer:
            told = re.search(rb"^fetchwell_commoncrawl_records_total (\d+)", answer.read(), re.MULTILINE)
    except OSError:
        return 0
    return int(told[1]) if told else 0


def status_kib(pid, field):
    return int(re.search(rf"^{field}:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)[1])


def render(options, pages, content_bytes, stored_bytes, costs):
    about = (
        f"The archive has {content_bytes:,} bytes inflated ({stored_bytes:,} stored), made of pages and of samples of others, and "
        f"is worked on under {options.files} names: {pages:,} pages; the Python workers do the first {options.peer_pages:,} of them. "
        "Processor time is that of the worker alone, its start included; RabbitMQ and the server of ranges run beside it. "
        "*× ours* is the median of each round's own ratio of documents a processor second."
    )
    columns = ["worker", "documents", "processor time a document", "documents a processor second", "× ours", "documents a second", "peak memory"]
    table = Table("Whole workers", about, columns)
    speed = {name: [documents / cpu_s for cpu_s, _, _, documents, _, _ in rounds] for name, rounds in costs.items()}
    for name, rounds in costs.items():
        each_s = statistics.median(cpu_s / documents for cpu_s, _, _, documents, _, _ in rounds)
        ratio = statistics.median(own / theirs for own, theirs in zip(speed[OURS], speed[name]))
        wall = statistics.median(documents / wall_s for _, wall_s, _, documents, _, _ in rounds)
        documents, peak_kib = rounds[-1][3], max(peak for *_, peak, _ in rounds)
        table.add(name, f"{documents:,}", f"{each_s * 1e6:,.0f} µs", f"{1 / each_s:,.0f}", f"{ratio:.1f}", f"{wall:,.0f}", mib(peak_kib))
    memory = Table("Memory over a run", "What our worker holds, at parts of the last round.", ["done", "resident"])
    for part in (0.1, 0.25, 0.5, 0.75, 0.95):
        memory.add(f"{part:.0%}", mib(min(costs[OURS][-1][5], key=lambda look: abs(look[0] - part))[1]))
    facts = [
        f"Made by `bench/commoncrawl/run` on {datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC, with {machine.fetchwell()}.",
        f"Machine: {machine.machine()}; load when it ended: {machine.load()}.",
        f"Rounds: {options.rounds}, in turns; the figures are medians.",
        "Goals: ten times as many documents of a processor second as requests, warcio and trafilatura; more than FastWARC and resiliparse.",
    ]
    head = "# What a document of Common Crawl costs\n\n[README.md](README.md) says what is measured and how to read it.\n\n"
    return head + "\n".join(f"- {fact}" for fact in facts) + "\n\n" + table.markdown() + "\n" + memory.markdown()


if __name__ == "__main__":
    main()
