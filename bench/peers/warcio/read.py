"""warcio: reads an archive up to the body of each HTTP response. Arguments: FILE."""

import sys

from warcio.archiveiterator import ArchiveIterator


def main():
    records = bodies = body_bytes = 0
    with open(sys.argv[1], "rb") as file:
        for record in ArchiveIterator(file):
            records += 1
            if record.rec_type == "response" and record.http_headers:
                bodies += 1
                body_bytes += len(record.content_stream().read())
    print(f"{records} records, {bodies} bodies, {body_bytes} bytes")


main()
