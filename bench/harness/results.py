"""bench/RESULTS.md: the newest run on top, older ones below."""

from .places import RESULTS

HEADING = """# Results

Written by `bench/run`; the newest run is on top. [README.md](README.md) says what is measured and how to read it.
"""


def section(date, machine, load, rounds, versions, notes, tables):
    """A run as Markdown."""
    facts = [
        f"Machine: {machine}; load when it began: {load}.",
        f"Rounds: {rounds}, in turns; the figures are medians.",
        "Versions: " + "; ".join(versions) + ".",
    ]
    facts += [f"Left out: {note}." for note in notes]
    facts_text = "\n".join(f"- {fact}" for fact in facts)
    return f"## {date}\n\n{facts_text}\n\n" + "\n".join(table.markdown() for table in tables)


def prepend(new):
    """Puts a section on top of those that are there."""
    older = RESULTS.read_text().removeprefix(HEADING) if RESULTS.exists() else ""
    RESULTS.write_text(HEADING + "\n" + new + older)
