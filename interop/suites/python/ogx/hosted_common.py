"""The fixtures of OGX' tests of hosted tools.

What OGX' server has and OpenAI's API has not, or has otherwise, is here: vector stores are files of STORES, which the program for `file_search`
reads; servers of MCP speak Streamable HTTP, on ports that the configuration of Truewire names; where a test says nothing of approvals, none is
wanted; and the events of hosted calls have the names of OpenAI.
"""

import contextlib
import io
import itertools
import json
import os
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import uvicorn
from common import *  # noqa: F403
from common import _Client
from mcp.server.mcpserver import Context, MCPServer
from starlette.responses import Response
from tests.common import mcp as ogx_mcp
from tests.integration.responses import streaming_assertions

# The suite is of mcp 1, and this environment has mcp 2, as OGX 1.5 has.
sys.modules["mcp.server.fastmcp"] = SimpleNamespace(Context=Context, FastMCP=MCPServer)

stores = Path(os.environ["STORES"])
ports = itertools.cycle(json.loads(os.environ["MCP_PORTS"]))
numbers = itertools.count(1)


@contextlib.contextmanager
def make_mcp_server(required_auth_token=None, tools=None, port=None):
    port = port or next(ports)
    server = MCPServer("test", log_level="WARNING")
    for function in (tools or ogx_mcp.default_tools()).values():
        server.tool()(function)
    app = server.streamable_http_app()

    async def guarded(scope, receive, send):
        given = dict(scope.get("headers", [])).get(b"authorization", b"").decode()
        if scope["type"] == "http" and required_auth_token and given != f"Bearer {required_auth_token}":
            return await Response("Unauthorized", 401)(scope, receive, send)
        return await app(scope, receive, send)

    running = uvicorn.Server(uvicorn.Config(guarded, host="127.0.0.1", port=port, log_level="error"))
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    while not running.started:
        time.sleep(0.01)
    try:
        yield {"server_url": f"http://127.0.0.1:{port}/mcp"}
    finally:
        running.should_exit = True
        thread.join(timeout=1)


def assert_has_tool_calls(validator):
    steps = ("mcp_call_arguments.", "web_search_call.", "file_search_call.", "function_call_arguments.")
    types = [chunk.type.removeprefix("response.") for chunk in validator.chunks]
    assert any(kind.startswith(steps) for kind in types), f"no event of a call in {types}"


ogx_mcp.make_mcp_server = make_mcp_server
streaming_assertions.StreamingValidator.assert_has_tool_calls = assert_has_tool_calls


def text_of(name, content):
    if not name.endswith(".pdf"):
        return content.decode()
    import pypdf

    return "\n".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(content)).pages)


class VectorStores:
    """Vector stores, each a file with the texts of its files."""

    def __init__(self, files):
        self._files, self._stores = files, {}
        self.files = SimpleNamespace(create=self._add, retrieve=self._retrieve)

    def create(self, name=None, **_):
        store = SimpleNamespace(id=f"vs_{next(numbers)}", name=name, contents=[])
        self._stores[store.id] = store
        self._write(store)
        return store

    def list(self):
        return list(self._stores.values())

    def delete(self, vector_store_id):
        del self._stores[vector_store_id]

    def _add(self, vector_store_id, file_id, attributes=None, **_):
        store, (name, content) = self._stores[vector_store_id], self._files[file_id]
        text = text_of(name, content)[:4000]
        store.contents.append({"fileId": file_id, "filename": name, "text": text, "attributes": attributes or {}})
        self._write(store)
        return self._retrieve(vector_store_id, file_id)

    def _retrieve(self, vector_store_id, file_id):
        return SimpleNamespace(id=file_id, status="completed", last_error=None)

    def _write(self, store):
        (stores / f"{store.id}.json").write_text(json.dumps(store.contents))


class Responses:
    def __init__(self, responses):
        self._responses = responses

    def create(self, tools=None, **given):
        for tool in tools or []:
            if tool.get("type") == "mcp":
                tool.setdefault("require_approval", "never")
        return self._responses.create(**given, **({} if tools is None else {"tools": tools}))

    def __getattr__(self, name):
        return getattr(self._responses, name)


class HostedClient(_Client):
    def __init__(self):
        super().__init__()
        self._contents = {}
        self.vector_stores = VectorStores(self._contents)
        self.files = SimpleNamespace(create=self._upload, list=lambda: [])
        self.responses = Responses(self._openai.responses)
        self.models = SimpleNamespace(list=lambda: Models(self._list_models()))

    def _upload(self, file, **_):
        name, content = file if isinstance(file, tuple) else (os.path.basename(file.name), file.read())
        file_id = f"file-{next(numbers)}"
        self._contents[file_id] = (name, content.read() if hasattr(content, "read") else content)
        return SimpleNamespace(id=file_id, filename=name)


class Models(list):
    data = property(lambda self: self)


@pytest.fixture(scope="session")
def openai_client():
    return HostedClient()


@pytest.fixture(scope="session")
def ogx_client(openai_client):
    return openai_client


@pytest.fixture(scope="session")
def embedding_model_id():
    return "words"


@pytest.fixture(scope="session")
def embedding_dimension():
    return 384
