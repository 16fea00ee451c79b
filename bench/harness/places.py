"""Where things are."""

from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
PEERS = TOP / "bench" / "peers"
ENGINE = TOP / "bench" / "engine"
RESULTS = TOP / "bench" / "RESULTS.md"
# What `cargo build --profile dist` makes: the programs that packages have, with LTO across crates.
DIST = TOP / "target" / "dist"
# Everything that is downloaded, built or written by a run; git ignores it.
WORK = TOP / "target" / "bench"
