"""The simulated web: the program simweb, and the judge of what it recorded."""

import json
import signal
import subprocess

from . import lists
from .places import DIST

ROBOTS_TXT = "User-agent: *\nDisallow: /private/\n"
PAGE_BYTES = 10 * 1024


class Origin:
    """A simulated web of these hosts, fresh for each run; `with` starts and stops it."""

    def __init__(self, hosts, folder):
        self.world = folder / "world.json"
        self.record = folder / "hits.jsonl"
        self.world.write_text(json.dumps([script(name) for host in hosts for name in (host, lists.named(host))]))
        self.record.unlink(missing_ok=True)

    def __enter__(self):
        command = [DIST / "simweb", "--loopback", "0", "--world", self.world, "--record", self.record]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        announced = self.process.stdout.readline()
        if not announced.startswith("listening "):
            raise RuntimeError("simweb did not start: its own words are above")
        self.port = int(announced.rsplit(":", 1)[1])
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def judged(self, interval_ms=0, tolerance_ms=0):
        """What came, as the origin saw it. Only after it has stopped."""
        command = [DIST / "simweb-judge", self.record]
        command += [f"--interval-ms={interval_ms}", f"--tolerance-ms={tolerance_ms}"]
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def script(name):
    return {"name": name, "page_bytes": PAGE_BYTES, "robots": {"text": ROBOTS_TXT}}
