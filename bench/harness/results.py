"""bench/RESULTS.md: the newest run on top, older ones below."""

from .places import RESULTS

HEADING = """# Results

Written by `bench/run`; the newest run is on top. [README.md](README.md) says what is measured and how to read it.
"""


def section(began, machine, load, rounds, versions, notes, tables):
    """A run as Markdown."""
    facts = [
        f"Machine: {machine}; load when it began: {load}.",
        f"Rounds: {rounds}, in turns; the figures are medians.",
        "Versions: " + "; ".join(versions) + ".",
    ]
    facts += [f"Left out: {note}." for note in notes]
    facts_text = "\n".join(f"- {fact}" for fact in facts)
    return f"## {began:%Y-%m-%d %H:%M} UTC\n\n{facts_text}\n\n" + "\n".join(table.markdown() for table in tables)


def older():
    """The sections that are there."""
    return RESULTS.read_text().removeprefix(HEADING + "\n") if RESULTS.exists() else ""


def write(new, below):
    """Puts a section on top of older ones."""
    RESULTS.write_text(f"{HEADING}\n{new}" + (f"\n{below}" if below else ""))
