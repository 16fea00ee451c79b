"""A client that openapi-python-client makes of the document: it does not collide with ours, and works.

Run by mod.rs: the document is the argument.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import fetchwell_client

URL = os.environ["FETCHWELL_URL"]
TOKEN = os.environ["FETCHWELL_TOKEN"]


def generate(document: Path) -> Path:
    """Generates it with the name that it gets if nobody names it, and returns its package."""
    folder = document.parent
    # Without its formatter, which takes time and changes nothing.
    (folder / "config.yml").write_text("post_hooks: []\n", encoding="utf-8")
    generator = [sys.executable, "-m", "openapi_python_client", "generate", "--path", document.name]
    made = subprocess.run([*generator, "--config", "config.yml"], cwd=folder, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    # What it cannot read it leaves out with a warning.
    print(made.stdout)
    assert "WARNING" not in made.stdout and "ERROR" not in made.stdout, made.stdout
    [package] = [path.parent for path in folder.glob("*/*/__init__.py")]
    return package


def main() -> None:
    package = generate(Path(sys.argv[1]))
    assert package.name != fetchwell_client.__name__, package
    sys.path.insert(0, str(package.parent))
    generated = importlib.import_module(package.name)
    assert Path(str(generated.__file__)).parent == package, generated.__file__
    fetch = importlib.import_module(f"{package.name}.api.messages.fetch")
    message = importlib.import_module(f"{package.name}.api.messages.message")
    models = importlib.import_module(f"{package.name}.models")

    with generated.AuthenticatedClient(base_url=URL, token=TOKEN) as client:
        sent = fetch.sync(client=client, body=models.FetchRequest(url="http://pages.test/one", correlation_id="g-1"))
        assert isinstance(sent, models.Message) and sent.correlation_id == "g-1", sent
        found = message.sync(sent.id, client=client, wait=60)
        assert isinstance(found, models.Message) and found.outbox.status.value == "success", found
        assert found.outbox.http_status == 200 and "fox" in found.outbox.content, found
        refused = fetch.sync(client=client, body=models.FetchRequest(url="ftp://pages.test/"))
        assert isinstance(refused, models.Problem) and refused.errors[0].pointer == "/url", refused

    # Both in one program.
    with fetchwell_client.Fetchwell(URL, TOKEN) as ours:
        assert ours.message(sent.id).correlation_id == "g-1"
    print("all held")


main()
