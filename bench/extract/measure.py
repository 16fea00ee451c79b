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
SETS = ["news", "web", "web2"]

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


def news_f1(measures, truth, said):
    pairs = [measures.news_pair(t["text"], said.get(i, {}).get("text")) for i, t in truth.items()]
    precision, recall = (measures.mean(pair[side] for pair in pairs) for side in (0, 1))
    return 2 * precision * recall / (precision + recall)


def web_scores(measures, truth, said):
    """Of one set of web pages: articles, all, title, date, author; and F1 by kind of page."""
    field = lambda i, name: said.get(i, {}).get(name) or ""
    f1 = {i: measures.web_f1(t["text"], field(i, "text")) for i, t in truth.items()}
    same = lambda name: measures.mean(
        measures.plain(field(i, name)) == measures.plain(t[name]) for i, t in truth.items() if t.get(name))
    dated = [i for i, t in truth.items() if re.match(r"\d{4}-\d\d-\d\d", t.get("date") or "")]
    date = measures.mean(field(i, "date")[:10] == truth[i]["date"][:10] for i in dated)
    of_kind = lambda kind: measures.mean(f1[i] for i, t in truth.items() if t["type"] == kind)
    kinds = {kind: of_kind(kind) for kind in sorted({t["type"] for t in truth.values()})}
    return [kinds["article"], measures.mean(f1.values()), same("title"), date, same("author")], kinds


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
    truth = {which: json.loads((data / which / "truth.json").read_text()) for which in SETS}
    shown = lambda figures: " | ".join(f"{figure:.3f}" if figure else "–" for figure in figures)
    first, second, third = [], [], []
    for name, (program, peer, _) in RUNNERS.items():
        said = {which: {row["id"]: row for row in run(program, "write", peer, data / which)} for which in SETS}
        empty = sum(not said[which].get(i, {}).get("text") for which in SETS for i in truth[which])
        base = BASE_ALL if name == "Fetchwell, all fields" else BASE
        ratio = statistics.median(b / s for b, s in zip(seconds[base], seconds[name]))
        speed = len(truth["news"]) / statistics.median(seconds[name])
        web, _ = web_scores(measures, truth["web"], said["web"])
        news = news_f1(measures, truth["news"], said["news"])
        first.append(f"| {name} | {shown([news] + web)} | {empty} | {speed:,.0f} | {ratio:.1f} |")
        web2, kinds = web_scores(measures, truth["web2"], said["web2"])
        second.append(f"| {name} | {shown(web2)} |")
        third.append(f"| {name} | {shown(kinds.values())} |")
    return "\n".join([
        "| | news F1 | web articles | web all | title | date | author | empty | pages/s | × trafilatura |", "|---" * 10 + "|",
        *first, "",
        "| | web2 articles | web2 all | title | date | author |", "|---" * 6 + "|", *second, "",
        f"| web2 by kind | {' | '.join(kinds)} |", "|---" * (len(kinds) + 1) + "|", *third, "",
        f"Parsing takes {shares[0]:.0%} of the time for text and title, {shares[1]:.0%} of that for all fields.",
        f"*All fields* is compared with trafilatura with metadata, the others with its text. {rounds} rounds.",
    ])


def earlier():
    """One line per earlier run, newest first; the run that RESULTS-extract.md has now becomes the first of them."""
    text = RESULTS.read_text() if RESULTS.exists() else ""
    lines = [line for line in text.splitlines() if line.startswith("- ")]
    date = re.search(r"^## (\d{4}-\d\d-\d\d)", text, re.MULTILINE)
    heads = [cell.strip() for cell in next((line for line in text.splitlines() if line.startswith("| |")), "").split("|")]
    of = lambda name: dict(zip(heads, [cell.strip() for cell in next(
        (line for line in text.splitlines() if line.startswith(f"| {name} |")), "").split("|")]))
    if not date or len(heads) < 3:
        return lines
    short, full = of("Fetchwell, text and title"), of("Fetchwell, all fields")
    line = (f"- {date[1]}: {short['× trafilatura']} × trafilatura for text and title, {full['× trafilatura']} × for all fields; "
            f"news {full['news F1']}, web articles {full['web articles']}, web all {full['web all']}")
    return [line] + lines


def machine():
    model = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.processor())
    return f"{datetime.date.today()}, {model}, one thread"


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", type=Path, required=True, help="a folder with score.py, news/, web/ and web2/")
    options.add_argument("--rounds", type=int, default=3, help="how often each is timed")
    options.add_argument("--print", action="store_true", help="leave RESULTS-extract.md as it is")
    chosen = options.parse_args()
    found = table(chosen.data.resolve(), chosen.rounds)
    print(found)
    if not chosen.print:
        history = "\n".join(earlier())
        RESULTS.write_text(f"# How well and how fast articles are extracted\n\n`bench/extract/run --data FOLDER`; "
                           f"README.md says what is measured.\n\n## {machine()}\n\n{found}\n\n## Earlier runs\n\n{history}\n")


if __name__ == "__main__":
    main()
