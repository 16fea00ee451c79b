"""Runs the extractor and its peers in turns, scores what they find, and writes the table."""
import argparse
import datetime
import json
import platform
import re
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parent.parent
RESULTS = TOP / "bench/RESULTS-extract.md"
OURS = [str(TOP / "target/dist/fetchwell-bench-extract")]
SMOOTHIE = [str(TOP / "bench/peers/dom_smoothie/target/release/peer-dom-smoothie")]
PYTHON = [sys.executable, str(HERE / "peers.py")]
BASE = "trafilatura 2.3.1, text"
BASE_ALL = "trafilatura, with metadata"

# Name: how it is called, with the name of its Python peer, and which of its times counts.
RUNNERS = {
    "Fetchwell, text and title": (OURS, None, "text"),
    "Fetchwell, all fields": (OURS, None, "all_fields"),
    BASE: (PYTHON, "trafilatura_text", "all_fields"),
    BASE_ALL: (PYTHON, "trafilatura_all", "all_fields"),
    "readability-lxml 0.9": (PYTHON, "readability", "all_fields"),
    "resiliparse 1.1.0": (PYTHON, "resiliparse", "all_fields"),
    "dom_smoothie 0.19": (SMOOTHIE, None, "all_fields"),
}


def run(program, command, peer, folder):
    words = program + [command] + ([peer] if peer else []) + [str(folder)]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def scores(measures, data, said):
    """The figures of one runner: news F1, web articles, web all, title, date, empty results."""
    truth = {name: json.loads((data / name / "truth.json").read_text()) for name in ("news", "web")}
    got = {name: {row["id"]: row for row in rows} for name, rows in said.items()}
    text = lambda name, i: got[name].get(i, {}).get("text") or ""
    pairs = [measures.news_pair(t["text"], text("news", i)) for i, t in truth["news"].items()]
    precision, recall = (measures.mean(pair[side] for pair in pairs) for side in (0, 1))
    web = truth["web"]
    f1 = {i: measures.web_f1(t["text"], text("web", i)) for i, t in web.items()}
    field = lambda i, name: got["web"].get(i, {}).get(name) or ""
    titled = [i for i in web if web[i].get("title")]
    dated = [i for i in web if re.match(r"\d{4}-\d\d-\d\d", web[i].get("date") or "")]
    return [
        2 * precision * recall / (precision + recall),
        measures.mean(f1[i] for i in f1 if web[i]["type"] == "article"),
        measures.mean(f1.values()),
        measures.mean(measures.plain(field(i, "title")) == measures.plain(web[i]["title"]) for i in titled),
        measures.mean(field(i, "date")[:10] == web[i]["date"][:10] for i in dated),
        sum(not text(name, i) for name in truth for i in truth[name]),
    ]


def timed(data, rounds):
    """Seconds on the news pages, round by round, the runners taking turns; and our share of parsing."""
    seconds = {name: [] for name in RUNNERS}
    parsing = []
    for _ in range(rounds):
        for name, (program, peer, which) in RUNNERS.items():
            row = run(program, "time", peer, data / "news")[0]
            seconds[name].append(row[which])
            if "parsing" in row:
                parsing.append(row["parsing"] / row[which])
    return seconds, [statistics.median(parsing[side::2]) for side in (0, 1)]


def table(data, rounds):
    sys.path.insert(0, str(data))
    import score as measures

    seconds, shares = timed(data, rounds)
    pages = len(json.loads((data / "news/truth.json").read_text()))
    lines = ["| | news F1 | web articles | web all | title | date | empty | pages/s | × trafilatura |",
             "|---|---|---|---|---|---|---|---|---|"]
    for name, (program, peer, _) in RUNNERS.items():
        said = {which: run(program, "write", peer, data / which) for which in ("news", "web")}
        *figures, empty = scores(measures, data, said)
        base = BASE_ALL if name == "Fetchwell, all fields" else BASE
        ratio = statistics.median(b / s for b, s in zip(seconds[base], seconds[name]))
        shown = " | ".join(f"{figure:.3f}" if figure else "–" for figure in figures)
        speed = pages / statistics.median(seconds[name])
        lines.append(f"| {name} | {shown} | {empty} | {speed:,.0f} | {ratio:.1f} |")
    lines += ["", f"Parsing takes {shares[0]:.0%} of the time for text and title, {shares[1]:.0%} of that for all fields.",
              f"*All fields* is compared with trafilatura with metadata, the others with its text. {rounds} rounds."]
    return "\n".join(lines)


def machine():
    model = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.processor())
    return f"{datetime.date.today()}, {model}, one thread"


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", type=Path, required=True, help="a folder with score.py, news/ and web/")
    options.add_argument("--rounds", type=int, default=3, help="how often each is timed")
    options.add_argument("--print", action="store_true", help="leave RESULTS-extract.md as it is")
    chosen = options.parse_args()
    found = table(chosen.data.resolve(), chosen.rounds)
    print(found)
    if not chosen.print:
        RESULTS.write_text(f"# How well and how fast articles are extracted\n\n`bench/extract/run --data FOLDER`; "
                           f"README.md says what is measured.\n\n## {machine()}\n\n{found}\n")


if __name__ == "__main__":
    main()
