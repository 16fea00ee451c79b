"""What warcio and FastWARC find in a sample: a JSON value a line. Arguments: warcio|fastwarc FILE.

A record is its type, address, and the length and SHA-1 of its body; a fault is its text.
"""

import hashlib
import json
import sys


def of_warcio(file):
    from warcio.archiveiterator import ArchiveIterator

    for record in ArchiveIterator(file):
        yield record.rec_type, record.rec_headers.get_header("WARC-Target-URI"), record.content_stream().read()


def of_fastwarc(file):
    from fastwarc.warc import ArchiveIterator

    for record in ArchiveIterator(file, auto_decode="all"):
        yield record.headers.get("WARC-Type"), record.headers.get("WARC-Target-URI"), record.reader.read()


def main():
    reader = {"warcio": of_warcio, "fastwarc": of_fastwarc}[sys.argv[1]]
    with open(sys.argv[2], "rb") as file:
        try:
            for kind, uri, body in reader(file):
                print(json.dumps([kind, uri, len(body), hashlib.sha1(body).hexdigest()]))
        except Exception as error:  # Whatever stops it is what we want to know.
            print(json.dumps(f"{type(error).__name__}: {error}"))


main()
