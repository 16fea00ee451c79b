"""Writes bench/extract/MARKDOWN.md: what Fetchwell and trafilatura make of each page in bench/extract/pages, side by side.

The pages were made for this, each with one construct; `notes.json` beside them says which result is better, and why.
"""
import argparse
import gzip
import html
import json
import subprocess
import tempfile
from pathlib import Path

import trafilatura

HERE = Path(__file__).resolve().parent
PAGES = HERE / "pages"
OURS = HERE.parent.parent / "target/dist/fetchwell-bench-extract"
ADDRESS = "https://valley.test/news/page"


def ours(program, addresses):
    """The Markdown of all pages, by name. What a page is shows in its address, too: posts are comments elsewhere."""
    with tempfile.TemporaryDirectory() as folder:
        for name in addresses:
            with gzip.open(Path(folder) / f"{name}.html.gz", "wb") as file:
                file.write((PAGES / f"{name}.html").read_bytes())
        (Path(folder) / "truth.json").write_text(json.dumps({name: {"url": url} for name, url in addresses.items()}))
        done = subprocess.run([program, "write", folder], stdout=subprocess.PIPE, text=True, check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {row["id"]: row["markdown"] for row in rows}


def theirs(name, address):
    """With everything that trafilatura can write; by default it leaves out links, images and marks."""
    found = trafilatura.extract((PAGES / f"{name}.html").read_bytes(), url=address, output_format="markdown",
                                include_formatting=True, include_links=True, include_images=True, include_tables=True)
    return found or ""


def cell(markdown):
    # A blank line would end the table in the page that is written.
    lines = html.escape(markdown.strip(), quote=False).splitlines()
    shown = "\n".join(line if line.strip() else "&#8203;" for line in lines)
    return f"<td valign=\"top\"><pre>{shown}</pre></td>"


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--program", default=OURS, help="fetchwell-bench-extract")
    options.add_argument("--print", action="store_true", help="leave MARKDOWN.md as it is")
    chosen = options.parse_args()
    notes = json.loads((PAGES / "notes.json").read_text())
    names = sorted(path.stem for path in PAGES.glob("*.html"))
    if missing := set(names) ^ set(notes):
        raise SystemExit(f"pages/notes.json and pages/*.html differ: {sorted(missing)}")
    addresses = {name: notes[name].get("url", ADDRESS) for name in names}
    found = ours(chosen.program, addresses)
    lines = [
        "# Markdown, side by side",
        "",
        f"What Fetchwell and trafilatura {trafilatura.__version__} make of the {len(names)} pages in [pages](pages), which were made",
        "for this. trafilatura may write marks, links, images and tables. `bench/extract/markdown.py` writes this page.",
        "",
        "| page | better | why |",
        "|---|---|---|",
    ]
    lines += [f"| [{name}](#{name}) | {notes[name]['better']} | {notes[name]['why']} |" for name in names]
    for name in names:
        lines += ["", f"## {name}", "", "<table><tr><th>Fetchwell</th><th>trafilatura</th></tr><tr>",
                  cell(found[name]), cell(theirs(name, addresses[name])), "</tr></table>"]
    text = "\n".join(lines) + "\n"
    if chosen.print:
        print(text)
    else:
        (HERE / "MARKDOWN.md").write_text(text)


if __name__ == "__main__":
    main()
