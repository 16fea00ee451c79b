"""Workers as one would write them in Python: batches from RabbitMQ, a range request a record, text, JSON lines.

Usage: worker.py warcio|fastwarc BASE QUEUE PAGES OUTPUT. It ends when it has seen that many pages; the broker is the one that
RABBITMQ_CONNECTION_STRING names. Libraries are used as their documentation shows, on one kept connection. What is written is
lost if it dies: the batch is acknowledged when its documents are handed to the file.
"""

import gzip
import hashlib
import io
import json
import os
import sys

import pika
import requests


def text_by_trafilatura(member, url):
    import trafilatura
    from warcio.archiveiterator import ArchiveIterator

    for record in ArchiveIterator(io.BytesIO(member)):
        if record.rec_type == "response":
            return trafilatura.extract(record.content_stream().read(), url=url)


def text_by_resiliparse(member, url):
    from fastwarc.warc import ArchiveIterator, WarcRecordType
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.encoding import bytes_to_str, detect_encoding

    for record in ArchiveIterator(io.BytesIO(member), record_types=WarcRecordType.response, auto_decode="all"):
        body = record.reader.read()
        return extract_plain_text(bytes_to_str(body, detect_encoding(body)), main_content=True)


def document(session, base, page, read):
    fields = page["metadata"]
    first = int(fields["offset"])
    last = first + int(fields["length"]) - 1
    answer = session.get(f"{base}/{fields['filename']}", headers={"Range": f"bytes={first}-{last}"}, timeout=30)
    answer.raise_for_status()
    text = read(answer.content, fields["url"]) or ""
    return {
        "url": fields["url"],
        "surt": page["surt_url"],
        "timestamp": page["timestamp"],
        "lang": fields.get("languages"),
        "text": text,
        "content_hash": hashlib.sha256(text.encode("utf-8", "replace")).hexdigest(),
        "warc": {"filename": fields["filename"], "offset": first, "length": int(fields["length"])},
    }


def main(reader, base, queue, pages, output):
    read = {"warcio": text_by_trafilatura, "fastwarc": text_by_resiliparse}[reader]
    session = requests.Session()
    connection = pika.BlockingConnection(pika.URLParameters(os.environ["RABBITMQ_CONNECTION_STRING"]))
    channel = connection.channel()
    channel.basic_qos(prefetch_count=1)
    seen = documents = faults = 0
    with gzip.open(output, "wt", compresslevel=6) as file:
        for method, _, body in channel.consume(queue):
            for page in json.loads(body):
                seen += 1
                try:
                    file.write(json.dumps(document(session, base, page, read), ensure_ascii=False) + "\n")
                    documents += 1
                except Exception:  # A page that a library fails on is counted, and the next one comes.
                    faults += 1
            channel.basic_ack(method.delivery_tag)
            if seen >= int(pages):
                break
    channel.cancel()
    connection.close()
    print(f"{seen} pages, {documents} documents, {faults} faults")
    if faults > seen / 10:
        sys.exit(f"{faults} of {seen} pages failed: something is missing here")


if __name__ == "__main__":
    main(*sys.argv[1:])
