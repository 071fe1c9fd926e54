"""OpenAI's Agents SDK for Python, whose models speak Responses."""

import asyncio
import json

import openai
from agents import (
    Agent,
    CodeInterpreterTool,
    FileSearchTool,
    HostedMCPTool,
    ModelSettings,
    OpenAIResponsesModel,
    Runner,
    WebSearchTool,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from openai.types.shared import Reasoning
from pydantic import BaseModel
from scenarios import GREETING, KEY, MODEL, NO_SUCH_MODEL, RESULT, SLOWLY, URL, WEATHER, equal, fails_once, run

set_tracing_disabled(True)
# A client keeps its connections, which belong to a loop.
loop = asyncio.new_event_loop()
client = AsyncOpenAI(base_url=f"{URL}/v1", api_key=KEY)


def agent(model: str = MODEL, **settings) -> Agent:
    return Agent(name="Helper", model=OpenAIResponsesModel(model=model, openai_client=client), **settings)


def ask(text: str, **settings):
    return loop.run_until_complete(Runner.run(agent(**settings), text))


def streamed(text: str, **settings):
    async def read():
        result = Runner.run_streamed(agent(**settings), text)
        pieces = []
        async for event in result.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                pieces.append(event.data.delta)
        return result, "".join(pieces)

    return loop.run_until_complete(read())


class Person(BaseModel):
    name: str
    age: int
    tags: list[str]


@function_tool
def get_weather(city: str) -> str:
    """The weather of a city."""
    return WEATHER


def stream() -> str:
    result, text = streamed("Hello")
    equal(text, GREETING)
    equal(result.final_output, GREETING, "final output")
    return f"{len(result.raw_responses)} response"


def tools() -> str:
    for result in (ask("Weather in Paris?", tools=[get_weather]), streamed("Weather?", tools=[get_weather])[0]):
        equal(result.final_output, RESULT)
    return "whole and streamed"


def structured() -> str:
    person = ask("A person", output_type=Person).final_output
    equal(type(person), Person, "parsed")
    return json.dumps(person.model_dump())


def error() -> str:
    try:
        ask("Hello", model=NO_SUCH_MODEL)
    except openai.BadRequestError as refused:
        equal((refused.status_code, refused.code), (400, "model_not_found"), "error")
    else:
        raise AssertionError("an unknown model was answered")
    equal(ask(fails_once()).final_output, GREETING)
    return "BadRequestError 400 model_not_found; 503 was tried again"


def cancel() -> str:
    async def leave():
        result = Runner.run_streamed(agent(), SLOWLY)
        async for event in result.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                equal(event.data.delta, "Hello ", "first piece")
                result.cancel()

    loop.run_until_complete(leave())
    return "closed after the first piece"


def reasoning() -> str:
    settings = ModelSettings(reasoning=Reasoning(summary="auto"))
    items = [item for item in ask("Hello", model_settings=settings).new_items if item.type == "reasoning_item"]
    equal([part.text for part in items[0].raw_item.summary], ["Let me think."], "summary")
    return "in summary of a reasoning item"


def hosted() -> str:
    notes = {"type": "mcp", "server_label": "notes", "server_url": "mcp:notes"}
    approved = []

    def approve(request):
        approved.append(request.data.name)
        return {"approve": True}

    tools = {
        "web_search_call": WebSearchTool(),
        "file_search_call": FileSearchTool(vector_store_ids=["vs_1"], include_search_results=True),
        "code_interpreter_call": CodeInterpreterTool({"type": "code_interpreter", "container": {"type": "auto"}}),
        "mcp_call": HostedMCPTool(tool_config={**notes, "require_approval": "never"}),
        "mcp_call with approval": HostedMCPTool({**notes, "require_approval": "always"}, on_approval_request=approve),
    }
    for name, tool in tools.items():
        for result in (ask("Go", tools=[tool]), streamed("Go", tools=[tool])[0]):
            items = [item.raw_item for item in result.new_items if item.type == "tool_call_item"]
            equal([item.type for item in items], [name.split()[0]], f"calls of {name}")
            equal(items[0].status, "completed", f"status of {name}")
            equal(result.final_output.startswith("The result is "), True, f"output {result.final_output!r} of {name}")
    equal(approved, ["list_notes"] * 2, "approvals")
    return f"{', '.join(tools)}; whole and streamed"


run(stream=stream, tools=tools, structured=structured, error=error, cancel=cancel, reasoning=reasoning, hosted=hosted)
