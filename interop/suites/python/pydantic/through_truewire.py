"""A plugin of pytest for Pydantic AI's tests with recorded answers: the answers come from a server here, through Truewire.

TRUEWIRE_URLS has the Truewires in front of the server, by the end of the paths of requests; TRUEWIRE_RECORDED_PORT is the server's port.
"""

import dataclasses
import inspect
import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import httpx2
import pytest
import yaml
from pydantic_ai.messages import ModelResponse

loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
urls = json.loads(os.environ["TRUEWIRE_URLS"])
vendors = ("api.openai.com", "api.anthropic.com")
own_headers = ("content-length", "content-encoding", "transfer-encoding", "connection", "date", "content-type", "server")


class _Recorded:
    """The requests and answers of the test that runs."""

    left = []
    truewire = ""
    lock = threading.Lock()

    def next(self, path):
        with self.lock:
            for entry in self.left:
                if urlsplit(entry["request"]["uri"]).path == path:
                    self.left.remove(entry)
                    return entry["response"]
        return None


recorded = _Recorded()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        models = [{"id": model, "object": "model", "created": 0, "owned_by": "system"} for model in sorted(_models())]
        self._answer(200, {}, json.dumps({"object": "list", "data": models}).encode(), "application/json")

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        response = recorded.next(urlsplit(self.path).path)
        if response is None:
            error = {"error": {"message": f"No answer to {self.path} is left.", "type": "recorded"}}
            return self._answer(404, {}, json.dumps(error).encode(), "application/json")
        headers = {name.lower(): values[0] for name, values in response["headers"].items()}
        if "parsed_body" in response:
            body = json.dumps(response["parsed_body"])
        else:
            body = response["body"]["string"]
        data = body.encode() if isinstance(body, str) else body
        kind = headers.get("content-type", "application/json")
        self._answer(response["status"]["code"], headers, data, kind)

    def _answer(self, status, headers, data, kind):
        self.send_response(status)
        for name, value in headers.items():
            if name not in own_headers:
                self.send_header(name, value)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _models():
    names = set()
    for folder in Path("tests/models/cassettes").iterdir():
        for file in folder.glob("*.yaml"):
            for line in file.read_text().splitlines():
                if line.startswith("      model: "):
                    names.add(line.removeprefix("      model: ").strip())
    return names


def pytest_configure(config):
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ["TRUEWIRE_RECORDED_PORT"])), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def pytest_collection_modifyitems(items):
    items[:] = [item for item in items if _file(item).exists()]


def _file(item):
    module = Path(item.module.__file__)
    return module.parent / "cassettes" / module.stem / f"{item.name}.yaml"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    entries = yaml.load(_file(item).read_text(), loader)["interactions"]
    if any(urlsplit(entry["request"]["uri"]).hostname not in vendors for entry in entries):
        pytest.skip("it asks another server than OpenAI's and Anthropic's")
    paths = {urlsplit(entry["request"]["uri"]).path for entry in entries}
    ends = [end for end in urls if any(path.endswith(end) or f"{end}/" in path for path in paths)]
    if len(ends) != 1 or any(entry["request"]["method"] != "POST" for entry in entries):
        pytest.skip(f"it asks for {', '.join(sorted(paths))}")
    if "vcr" in inspect.signature(item.function).parameters:
        pytest.skip("it reads the recording itself")
    recorded.left = list(entries)
    recorded.truewire = urls[ends[0]]


def _through_truewire(library):
    """Sends what is for the vendors to Truewire: the addresses that tests compare stay the vendors'."""
    original = library.AsyncHTTPTransport.handle_async_request

    async def handle_async_request(self, request):
        if request.url.host in vendors:
            truewire = library.URL(recorded.truewire)
            request.url = request.url.copy_with(scheme=truewire.scheme, host=truewire.host, port=truewire.port)
            request.headers["host"] = f"{truewire.host}:{truewire.port}"
        return await original(self, request)

    library.AsyncHTTPTransport.handle_async_request = handle_async_request


_through_truewire(httpx)
_through_truewire(httpx2)

# Truewire answers with the name of the model that was asked for, the vendors with the one of its version.
_equals = ModelResponse.__eq__


def _equals_but_for_model(self, other):
    if isinstance(other, ModelResponse):
        return _equals(dataclasses.replace(self, model_name=other.model_name), other)
    return NotImplemented


ModelResponse.__eq__ = _equals_but_for_model
