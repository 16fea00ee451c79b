"""On what a run was made, and with which versions."""

import json
import os
import platform
import subprocess
import tomllib

from .places import DIST, PEERS, TOP, WORK


def machine():
    return f"{os.cpu_count()} cores ({cpu_model()}), {memory_gib():.0f} GiB of memory, Linux {platform.release()}"


def load():
    """How busy the machine is with other things: much of it makes the figures worse for all."""
    return f"{os.getloadavg()[0]:.1f}"


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def memory_gib():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def versions(fetchers):
    """A version for each fetcher's name, with the language that it runs on."""
    known = {
        "reqwest": lambda: f"reqwest {locked('reqwest')}, {rust()}",
        "engine": fetchwell,
        "fetchwell": fetchwell,
        "fetchwell-html": fetchwell,
        "spider": lambda: f"spider {locked('spider')}, {rust()}",
        "colly": lambda: f"Colly {colly()}, {said('go', 'env', 'GOVERSION')}",
        "crawlee": lambda: f"Crawlee {crawlee()}, Node {said('node', '--version')}",
        "scrapy": lambda: f"{said(WORK / 'scrapy/bin/python', '-m', 'scrapy', 'version')}, {said(WORK / 'scrapy/bin/python', '--version')}",
    }
    return list(dict.fromkeys(known[fetcher.name]() for fetcher in fetchers))


def fetchwell():
    return f"{said(DIST / 'fetchwell', '--version')} at {said('git', 'describe', '--always', '--dirty')}, {rust()}"


def rust():
    return " ".join(said("rustc", "--version").split()[:2])


def locked(package):
    lock = tomllib.loads((PEERS / package / "Cargo.lock").read_text())
    return next(entry["version"] for entry in lock["package"] if entry["name"] == package)


def colly():
    command = ["go", "list", "-m", "-f", "{{.Version}}", "github.com/gocolly/colly/v2"]
    return said(*command, folder=PEERS / "colly")


def crawlee():
    return json.loads((WORK / "crawlee/node_modules/@crawlee/http/package.json").read_text())["version"]


def said(*command, folder=TOP):
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
