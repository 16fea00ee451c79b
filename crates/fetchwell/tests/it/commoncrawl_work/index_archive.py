"""Makes the index of a folder of WARC files as Common Crawl has it, and tells what two readers of others find in them.

Usage: index_archive.py ROOT CRAWL LINES_A_BLOCK. Archives lie in ROOT/crawl-data, the index goes to
ROOT/cc-index/collections/CRAWL/indexes. Every record is indexed whose place either reader tells, whatever its type is, so
that whoever works on the index has to account for each. (Of a file that is one gzip member only the first record has a
place.) One JSON object a file goes to standard output.
"""

import gzip
import itertools
import json
import sys
from pathlib import Path
from urllib.parse import urlsplit

from fastwarc.warc import ArchiveIterator as FastReader
from warcio.archiveiterator import ArchiveIterator as WarcioReader

# Up to three codes as Common Crawl has them, missing for some, and one that only looks like another.
LANGUAGES = ["eng", "zho,eng", "eng,deu,fra", None, "zho", "deu", "engx", "rus,ukr", "eng"]
HTML = ("text/html", "application/xhtml+xml")


def main():
    root, crawl, lines_a_block = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    languages = itertools.cycle(LANGUAGES)
    lines = []
    for path in sorted((root / "crawl-data").iterdir()):
        by_warcio, warcio_fault = until_fault(lambda: with_warcio(path))
        by_fastwarc, fastwarc_fault = until_fault(lambda: with_fastwarc(path))
        records = united(by_warcio, by_fastwarc, path.stat().st_size)
        for record in records:
            record["languages"] = next(languages)
            lines.append(line(record, f"crawl-data/{path.name}"))
        found = {"file": f"crawl-data/{path.name}", "records": records}
        found |= {"warcio": len(by_warcio), "warcio_fault": warcio_fault}
        print(json.dumps(found | {"fastwarc": len(by_fastwarc), "fastwarc_fault": fastwarc_fault}))
    write_index(root / "cc-index" / "collections" / crawl / "indexes", sorted(lines), lines_a_block)


def until_fault(records):
    """What a reader gives, and why it gave no more."""
    found = []
    try:
        found.extend(iterate(records(), found))
    except Exception as fault:  # Readers end in whatever way they like.
        return found, f"{type(fault).__name__}: {fault}"[:100]
    return found, None


def iterate(records, found):
    """Keeps what came before a fault."""
    for record in records:
        found.append(record)
    return ()


def with_warcio(path):
    with path.open("rb") as file:
        reader = WarcioReader(file)
        for record in reader:
            head = record.http_headers if record.rec_type == "response" else None
            facts = {
                "type": record.rec_type,
                "url": record.rec_headers.get_header("WARC-Target-URI"),
                "date": record.rec_headers.get_header("WARC-Date"),
                "status": head and head.get_statuscode(),
                "mime": head and mime(head.get_header("Content-Type")),
            }
            offset = reader.get_record_offset()
            # Telling a length reads the record to its end.
            yield facts | {"offset": offset, "length": reader.get_record_length()}


def with_fastwarc(path):
    with path.open("rb") as file:
        for record in FastReader(file, parse_http=False):
            kind = record.headers.get("WARC-Type")
            is_response = kind == "response" and record.is_http
            if is_response:
                record.parse_http()
            head = record.http_headers if is_response else None
            yield {
                "type": kind,
                "url": record.headers.get("WARC-Target-URI"),
                "date": record.headers.get("WARC-Date"),
                "status": head and str(head.status_code),
                "mime": head and mime(head.get("Content-Type")),
                "offset": record.stream_pos,
            }


def mime(content_type):
    return (content_type or "").split(";")[0].strip().lower() or None


def united(by_warcio, by_fastwarc, file_bytes):
    """Each place once, by whoever tells it. One that several records share is the place of the first."""
    records = {}
    for record in by_warcio + by_fastwarc:
        if record["offset"] < file_bytes:
            records.setdefault(record["offset"], record)
    offsets = sorted(records)
    for offset, end in zip(offsets, offsets[1:] + [file_bytes]):
        record = records[offset]
        # warcio tells a length of its own making where records share a member.
        if record.get("length", 0) <= 0:
            record["length"] = end - offset
        record["is_page"] = record["type"] == "response" and record["mime"] in HTML
    return [records[offset] for offset in offsets]


def line(record, filename):
    url = (record["url"] or "").strip("<>")
    digits = "".join(filter(str.isdigit, record["date"] or ""))
    fields = {"url": url, "mime": record["mime"], "status": record["status"]}
    fields |= {"length": str(record["length"]), "offset": str(record["offset"]), "filename": filename}
    fields["languages"] = record["languages"]
    told = {name: value for name, value in fields.items() if value is not None}
    return f"{surt(url)} {digits[:14].ljust(14, '0')} {json.dumps(told)}\n"


def surt(url):
    parts = urlsplit(url)
    host = ",".join(reversed((parts.hostname or "nowhere").split(".")))
    return f"{host}){parts.path or '/'}".replace(" ", "%20").lower()


def write_index(folder, lines, lines_a_block):
    folder.mkdir(parents=True)
    offset = 0
    with (folder / "cdx-00000.gz").open("wb") as cdx, (folder / "cluster.idx").open("w") as cluster:
        for number, start in enumerate(range(0, len(lines), lines_a_block), 1):
            block = lines[start : start + lines_a_block]
            member = gzip.compress("".join(block).encode())
            cdx.write(member)
            key = " ".join(block[0].split(" ", 2)[:2])
            cluster.write(f"{key}\tcdx-00000.gz\t{offset}\t{len(member)}\t{number}\n")
            offset += len(member)


if __name__ == "__main__":
    main()
