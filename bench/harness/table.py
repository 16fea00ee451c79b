"""Tables of Markdown."""


class Table:
    """A title, some sentences and rows."""

    def __init__(self, title, about, columns):
        self.title = title
        self.about = about
        self.columns = columns
        self.rows = []

    def add(self, *cells):
        assert len(cells) == len(self.columns), cells
        self.rows.append(cells)

    def add_fault(self, *cells_and_fault):
        """A row without figures: what was measured is not the same work."""
        title, fault, *cells = cells_and_fault
        self.add(title, *cells, f"invalid: {fault}", *[""] * (len(self.columns) - 2 - len(cells)))

    def markdown(self):
        lines = [f"### {self.title}", "", self.about, "", row(self.columns), row(["---"] * len(self.columns))]
        return "\n".join(lines + [row(cells) for cells in self.rows]) + "\n"


def row(cells):
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def times(value, unit):
    return f"{value / unit:.2f}" if unit else "?"


def mib(kib):
    return f"{kib / 1024:.0f} MiB"
