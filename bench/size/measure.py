#!/usr/bin/env python3
"""What is in the program: its sections, and code and constants by library.

    CARGO_PROFILE_DIST_STRIP=none cargo build-dist
    bench/size/measure.py target/dist/fetchwell

The program must have its symbols; `scripts/package --program target/dist/fetchwell` strips it afterwards. Prints Markdown.

A generic function counts for the crate that defines it, not for the one that uses it: much of what tokio, core and
alloc have here was made for our types. Text and tables without a symbol, most of all strings, are in a line of their own.
"""

import argparse
import collections
import pathlib
import re
import subprocess

# What the C libraries call what others can see, by prefix. What is local to a file counts for the file's library.
C_PREFIXES = {
    "sqlite3": "SQLite (C)",
    "rd_": "librdkafka (C)",
    "aws_lc": "AWS-LC (C)",
    "ZSTD": "zstd (C)",
    "HUF_": "zstd (C)",
    "FSE_": "zstd (C)",
    "ZDICT": "zstd (C)",
    "mi_": "mimalloc (C)",
    "_mi_": "mimalloc (C)",
    "libdeflate": "libdeflate (C)",
    "LZ4": "librdkafka (C)",
    "ecp_nistz": "AWS-LC (C)",
}
C_FILES = [
    (re.compile(r"sqlite3\.c"), "SQLite (C)"),
    (re.compile(r"rd.*\.c|tinycthread.*|snappy\.c|lz4.*\.c|xxhash\.c|cJSON\.c|crc32c\.c|regexp\.c"), "librdkafka (C)"),
    (re.compile(r"zstd.*\.[cS]|huf_.*|fse_.*|hist\.c|pool\.c|entropy_common\.c|cover\.c|zdict\.c|divsufsort\.c"), "zstd (C)"),
    (re.compile(r"static\.c"), "mimalloc (C)"),
    (re.compile(r"deflate_.*\.c|adler32\.c|crc32\.c|gzip_.*\.c|zlib_.*\.c"), "libdeflate (C)"),
]
STANDARD = {"core", "alloc", "std", "hashbrown", "compiler_builtins", "std_detect", "gimli", "addr2line", "rustc_demangle"}
KINDS = {"text": ".text", "read-only data": ".rodata", "relocated data": ".data.rel.ro"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--least", type=int, default=100, metavar="KB", help="smaller libraries go into one line [default: 100]")
    options = parser.parse_args()
    sections = read_sections(options.program)
    print_sections(sections)
    print()
    print_libraries(sections, read_symbols(options.program), options.least * 1000)


def said(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def read_sections(program):
    """Each section that is loaded or that takes space: its name, number and size."""
    sections = {}
    for line in said("readelf", "--section-headers", "--wide", program).splitlines():
        match = re.match(r"\s*\[\s*(\d+)\]\s+(\S+)\s+(\S+)\s+\S+\s+\S+\s+(\S+)\s+\S+\s+(\S*)", line)
        if match and match[3] != "NOBITS" and "A" in match[5]:
            sections[match[2]] = (int(match[1]), int(match[4], 16))
    return sections


def read_symbols(program):
    """Functions and objects: section number, size and library. Aliases of one address count once."""
    seen = set()
    file = ""
    for line in said("readelf", "--symbols", "--wide", "--demangle=rust", program).splitlines():
        fields = line.split(maxsplit=7)
        if len(fields) < 8 or not fields[0].rstrip(":").isdigit():
            continue
        _, address, size, kind, binding, _, section, name = fields
        if kind == "FILE":
            file = name
        if kind in ("FUNC", "OBJECT") and section.isdigit():
            size = int(size, 0)
            if size and address not in seen:
                seen.add(address)
                yield int(section), size, library(name, file if binding == "LOCAL" else "")


def library(name, file):
    for pattern, found in C_FILES:
        if pattern.fullmatch(file):
            return found
    if "::" in name:
        return crate(name)
    for prefix, found in C_PREFIXES.items():
        if name.startswith(prefix):
            return found
    return "AWS-LC (C)" if file.endswith((".c", ".S")) or not file else "others"


def crate(name):
    """The first crate in a demangled name that is not the standard library."""
    found = [word.removeprefix("r#") for word in re.findall(r"(?<![\w:.])([a-z_]\w*)(?:\[\w+\])?::", name)]
    ours = [word for word in found if word not in STANDARD]
    return ours[0].replace("_", "-") if ours else "the standard library"


def print_sections(sections):
    print("| section | MB |\n|---|---:|")
    whole = sum(size for _, size in sections.values())
    shown = {name: size for name, (_, size) in sections.items() if size > 50_000}
    for name, size in sorted(shown.items(), key=lambda item: -item[1]):
        print(f"| `{name}` | {size / 1e6:.2f} |")
    print(f"| others | {(whole - sum(shown.values())) / 1e6:.2f} |")
    print(f"| **all** | **{whole / 1e6:.2f}** |")


def print_libraries(sections, symbols, least):
    numbers = {number: name for name, (number, _) in sections.items()}
    sizes = collections.defaultdict(collections.Counter)
    for section, size, of in symbols:
        if section in numbers:
            sizes[of][numbers[section]] += size
    columns = list(KINDS.values())
    for column in columns:
        named = sum(of[column] for of in sizes.values())
        sizes["without a symbol"][column] = max(0, sections.get(column, (0, 0))[1] - named)
    small = [of for of, found in sizes.items() if sum(found[column] for column in columns) < least]
    for of in small:
        sizes[f"{len(small)} others"].update(sizes.pop(of))
    print("| library | code, MB | constants, MB | together, MB |\n|---|---:|---:|---:|")
    rows = [(of, found[".text"], found[".rodata"] + found[".data.rel.ro"]) for of, found in sizes.items()]
    for of, code, constants in sorted(rows, key=lambda row: -(row[1] + row[2])):
        print(f"| {of} | {code / 1e6:.2f} | {constants / 1e6:.2f} | {(code + constants) / 1e6:.2f} |")


if __name__ == "__main__":
    main()
