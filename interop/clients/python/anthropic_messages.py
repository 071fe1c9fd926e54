"""Anthropic's Python SDK."""

import json

import anthropic
from anthropic import Anthropic, beta_tool
from pydantic import BaseModel
from scenarios import GREETING, KEY, MODEL, NO_SUCH_MODEL, RESULT, SLOWLY, URL, WEATHER, equal, fails_once, run

client = Anthropic(base_url=URL, api_key=KEY)


def asked(text: str) -> dict:
    return {"model": MODEL, "max_tokens": 2048, "messages": [{"role": "user", "content": text}]}


def text_of(message) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


class Person(BaseModel):
    name: str
    age: int
    tags: list[str]


def stream() -> str:
    text = ""
    with client.messages.stream(**asked("Hello")) as events:
        for piece in events.text_stream:
            text += piece
        message = events.get_final_message()
    equal(text, GREETING)
    equal(text_of(message), GREETING, "final message")
    return f"stop_reason {message.stop_reason}, usage {message.usage.to_dict()}"


def tools() -> str:
    calls = []

    @beta_tool
    def get_weather(city: str) -> str:
        """The weather in a city.

        Args:
            city: The name of the city.
        """
        calls.append(city)
        return WEATHER

    # The SDK's own loop.
    last = client.beta.messages.tool_runner(tools=[get_weather], **asked("Weather in Paris?")).until_done()
    equal(calls, ["Paris"], "calls")
    equal(text_of(last), RESULT)
    return "1 call by the tool runner, then a text"


def structured() -> str:
    person = client.messages.parse(output_format=Person, **asked("A person")).parsed_output
    equal(type(person), Person, "parsed")
    return json.dumps(person.model_dump())


def error() -> str:
    try:
        client.messages.create(**{**asked("Hello"), "model": NO_SUCH_MODEL})
    except anthropic.NotFoundError as refused:
        equal((refused.status_code, refused.body["error"]["type"]), (404, "not_found_error"), "error")
    else:
        raise AssertionError("an unknown model was answered")
    equal(text_of(client.messages.create(**asked(fails_once()))), GREETING)
    return "NotFoundError 404 not_found_error; 503 was tried again"


def cancel() -> str:
    with client.messages.stream(**asked(SLOWLY)) as events:
        equal(next(iter(events.text_stream)), "Hello ", "first piece")
    return "closed after the first piece"


def reasoning() -> str:
    message = client.messages.create(thinking={"type": "enabled", "budget_tokens": 1024}, **asked("Hello"))
    thoughts = [block for block in message.content if block.type == "thinking"]
    equal([block.thinking for block in thoughts], ["Let me think."], "thinking")
    return f"a thinking block, signature of {len(thoughts[0].signature)} characters"


def hosted() -> str:
    servers = [{"type": "url", "name": "notes", "url": "mcp:notes"}]
    declared = {
        "web_search_tool_result": ({"type": "web_search_20250305", "name": "web_search"}, {}),
        "mcp_tool_result": (
            {"type": "mcp_toolset", "mcp_server_name": "notes"},
            {"mcp_servers": servers, "betas": ["mcp-client-2025-11-20"]},
        ),
    }
    for name, (tool, more) in declared.items():
        request = {"tools": [tool], **more, **asked("Go")}
        whole = client.beta.messages.create(**request)
        with client.beta.messages.stream(**request) as events:
            streamed = events.get_final_message()
        for message in (whole, streamed):
            equal([block.type for block in message.content if block.type == name], [name], "results")
            equal(message.content[-1].text.startswith("The result is "), True, f"text {message.content[-1].text!r}")
    return f"{', '.join(declared)}; whole and streamed"


run(stream=stream, tools=tools, structured=structured, error=error, cancel=cancel, reasoning=reasoning, hosted=hosted)
