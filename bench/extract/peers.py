"""The Python peers on a folder of pages: `write PEER FOLDER` prints what one makes of them, `time PEER FOLDER` what that costs.

Each is used as its documentation shows, with its defaults.
"""
import gzip
import json
import sys
import time
from pathlib import Path


def trafilatura_text(body, url):
    import trafilatura

    return {"text": trafilatura.extract(body, url=url)}


def trafilatura_all(body, url):
    import trafilatura

    document = trafilatura.bare_extraction(body, url=url, with_metadata=True)
    found = document.as_dict() if document else {}
    return {"text": found.get("text"), "title": found.get("title"), "date": found.get("date"),
            "author": found.get("author")}


def readability(body, url):
    from lxml import html
    from readability import Document

    document = Document(body)
    return {"text": html.fromstring(document.summary()).text_content(), "title": document.short_title()}


def resiliparse(body, url):
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.encoding import bytes_to_str, detect_encoding

    return {"text": extract_plain_text(bytes_to_str(body, detect_encoding(body)), main_content=True)}


def attempt(extract, body, url):
    """A page on which a peer fails is one that it found nothing on."""
    try:
        return extract(body, url)
    except Exception:
        return {}


def main(command, peer, folder):
    extract = globals()[peer]
    truth = json.loads((Path(folder) / "truth.json").read_text())
    pages = [(i, t.get("url"), gzip.open(Path(folder) / f"{i}.html.gz").read()) for i, t in truth.items()]
    if command == "write":
        for page_id, url, body in pages:
            print(json.dumps({"id": page_id} | attempt(extract, body, url)))
        return
    attempt(extract, pages[0][2], pages[0][1])  # Modules are imported before the clock starts.
    before = time.thread_time()
    for _, url, body in pages:
        attempt(extract, body, url)
    print(json.dumps({"all_fields": time.thread_time() - before}))


if __name__ == "__main__":
    main(*sys.argv[1:])
