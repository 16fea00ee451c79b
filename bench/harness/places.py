"""Where things are."""

from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
PEERS = TOP / "bench" / "peers"
ENGINE = TOP / "bench" / "engine"
RESULTS = TOP / "bench" / "RESULTS.md"
# What `cargo build-dist` makes, the program that packages have, and what `cargo build --profile dist` makes of others.
DIST = TOP / "target" / "dist"
# Everything that is downloaded, built or written by a run; git ignores it.
WORK = TOP / "target" / "bench"
