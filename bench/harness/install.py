"""Installs and builds what is measured, into git-ignored folders. What is there and current is left as it is."""

import shutil
import subprocess
import sys

from .places import ENGINE, PEERS, TOP, WORK


def fetchwell():
    """Fetchwell and the simulated web with its judge."""
    cargo_dist("--package", "fetchwell-simweb")
    call(["cargo", "--quiet", "build-dist"])


def engine():
    """The program that runs the engine on a queue in memory."""
    if not ENGINE.exists():
        raise LookupError("bench/engine is not in this checkout")
    cargo_dist("--package", "fetchwell-bench", "--bin", "speed")


def reqwest():
    cargo(PEERS / "reqwest", "--target-dir", WORK / "reqwest")


def spider():
    need("pkg-config", "pkg-config", "libssl-dev")
    cargo(PEERS / "spider", "--target-dir", WORK / "spider")


def colly():
    need("go", "golang-go", "ca-certificates")
    call(["go", "build", "-o", WORK / "colly" / "peer-colly", "."], PEERS / "colly")


def scrapy():
    need("python3", "python3", "python3-venv")
    folder = WORK / "scrapy"
    if not (folder / "bin" / "python").exists():
        call([sys.executable, "-m", "venv", folder])
    requirements = PEERS / "scrapy" / "requirements.txt"
    call([folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--requirement", requirements])


def crawlee():
    need("npm", "nodejs", "npm")
    folder = WORK / "crawlee"
    folder.mkdir(parents=True, exist_ok=True)
    installed = folder / "node_modules" / ".package-lock.json"
    ours, theirs = PEERS / "crawlee" / "package-lock.json", folder / "package-lock.json"
    current = installed.exists() and theirs.exists() and ours.read_bytes() == theirs.read_bytes()
    # Node looks for packages beside the program, so the program goes where they are.
    for file in ("package.json", "package-lock.json", "crawl.js"):
        shutil.copy(PEERS / "crawlee" / file, folder)
    if not current:
        call(["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], folder)


def need(tool, *packages):
    """Has these Debian packages installed where the tool is missing."""
    if shutil.which(tool) is None:
        call([TOP / "scripts" / "setup", "--packages", *packages])


def cargo_dist(*arguments):
    """Builds programs of this workspace as packages have them."""
    call(["cargo", "build", "--profile", "dist", "--locked", "--quiet", *arguments])


def cargo(folder, *arguments):
    """Builds a peer. Its release profile has the settings of our dist profile."""
    call(["cargo", "build", "--release", "--locked", "--quiet", *arguments], folder)


def call(command, folder=TOP):
    """Standard output is the tables' alone."""
    subprocess.run(command, cwd=folder, check=True, stdout=sys.stderr)
