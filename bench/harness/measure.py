"""What a process costs: processor time and memory, of it and its children."""

import subprocess
from dataclasses import dataclass

# GNU time asks the kernel (wait4) when the command has ended.
TIME = ["/usr/bin/time", "--quiet", "--format=%U %S %e %M"]

# In the foreground, so that Ctrl-C reaches the command too.
TIMEOUT = ["timeout", "--foreground", "--kill-after=10"]
# What `timeout` exits with.
TIMED_OUT = 124


@dataclass
class Cost:
    """What a command cost, and whether it ended well."""

    cpu_s: float
    wall_s: float
    peak_kib: int
    # None when it ended well.
    fault: str | None


def run(command, folder, timeout_s):
    """Runs a command in a folder of its own. What it says goes to a file there."""
    figures, said = folder / "time.txt", folder / "said.txt"
    with said.open("w") as words:
        process = subprocess.Popen(
            [*TIME, f"--output={figures}", *TIMEOUT, str(timeout_s), *command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=words,
            stderr=subprocess.STDOUT,
        )
        code = process.wait()
    user_s, system_s, wall_s, peak_kib = figures.read_text().split()
    cost = Cost(float(user_s) + float(system_s), float(wall_s), int(peak_kib), None)
    if code == TIMED_OUT:
        cost.fault = f"not done after {timeout_s} s"
    elif code != 0:
        cost.fault = f"exit code {code}: {last_line(said)}"
    return cost


def last_line(path):
    lines = path.read_text(errors="replace").strip().splitlines()
    return lines[-1][:200] if lines else "it said nothing"
