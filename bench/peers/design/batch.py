"""The loop of the pipeline's design: gzip, json, a list. Arguments: FOLDER with cluster.idx and CDX files."""

import csv
import gzip
import json
import sys
from pathlib import Path

BATCH_SIZE = 50


def main():
    folder = Path(sys.argv[1])
    lines = wanted = 0
    found = []
    with open(folder / "cluster.idx", encoding="utf-8") as index, open(folder / "cdx-00000.gz", "rb") as cdx:
        for chunk in csv.reader(index, delimiter="\t"):
            cdx.seek(int(chunk[2]))
            data = gzip.decompress(cdx.read(int(chunk[3]))).decode("utf-8")
            for line in data.split("\n"):
                if line == "":
                    continue
                lines += 1
                surt, timestamp, text = line.split(" ", 2)
                metadata = json.loads(text)
                if "languages" in metadata and "eng" in metadata["languages"] and metadata["status"] == "200":
                    wanted += 1
                    found.append({"surt_url": surt, "timestamp": timestamp, "metadata": metadata})
                if len(found) >= BATCH_SIZE:
                    publish(found)
                    found = []
        if found:
            publish(found)
    print(f"{lines} lines, {wanted} wanted")


def publish(batch):
    """Where the design hands the body to RabbitMQ."""
    return len(json.dumps(batch))


main()
