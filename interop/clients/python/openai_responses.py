"""OpenAI's Python SDK over the Responses API."""

import json

import openai
from openai import OpenAI, pydantic_function_tool
from openai.types.responses import ResponseFunctionToolCall
from pydantic import BaseModel
from scenarios import GREETING, KEY, MODEL, NO_SUCH_MODEL, RESULT, SLOWLY, URL, WEATHER, equal, fails_once, run

client = OpenAI(base_url=f"{URL}/v1", api_key=KEY)


class GetWeather(BaseModel):
    city: str


class Person(BaseModel):
    name: str
    age: int
    tags: list[str]


def stream() -> str:
    text, events, done = "", [], None
    for event in client.responses.create(model=MODEL, input="Hello", stream=True):
        events.append(event.type)
        if event.type == "response.output_text.delta":
            text += event.delta
        if event.type == "response.completed":
            done = event.response
    equal(text, GREETING)
    equal(done and done.output_text, GREETING, "completed")
    return f"{len(events)} events, usage {done.usage.to_dict()}"


def tools() -> str:
    tool = pydantic_function_tool(GetWeather)["function"]
    asked, calls = {"input": "Weather in Paris?"}, 0
    while True:
        with client.responses.stream(model=MODEL, tools=[{"type": "function", **tool}], **asked) as events:
            answer = events.get_final_response()
        results = []
        for item in answer.output:
            if isinstance(item, ResponseFunctionToolCall):
                calls += 1
                GetWeather.model_validate_json(item.arguments)
                results.append({"type": "function_call_output", "call_id": item.call_id, "output": WEATHER})
        if not results:
            equal(answer.output_text, RESULT)
            return f"{calls} call, then a text, over previous_response_id"
        asked = {"input": results, "previous_response_id": answer.id}


def structured() -> str:
    person = client.responses.parse(model=MODEL, input="A person", text_format=Person).output_parsed
    equal(type(person), Person, "parsed")
    return json.dumps(person.model_dump())


def error() -> str:
    try:
        client.responses.create(model=NO_SUCH_MODEL, input="Hello")
    except openai.BadRequestError as refused:
        # OpenAI's Responses API answers 400 here, not 404 as Chat Completions does.
        equal((refused.status_code, refused.code), (400, "model_not_found"), "error")
    else:
        raise AssertionError("an unknown model was answered")
    equal(client.responses.create(model=MODEL, input=fails_once()).output_text, GREETING)
    return "BadRequestError 400 model_not_found, as OpenAI's; 503 was tried again"


def cancel() -> str:
    with client.responses.create(model=MODEL, input=SLOWLY, stream=True) as events:
        first = next(event for event in events if event.type == "response.output_text.delta")
    equal(first.delta, "Hello ", "first piece")
    return "closed after the first piece"


def reasoning() -> str:
    answer = client.responses.create(model=MODEL, input="Hello", reasoning={"summary": "auto"})
    items = [item for item in answer.output if item.type == "reasoning"]
    equal(len(items), 1, "reasoning items")
    texts = [part.text for part in [*items[0].summary, *(items[0].content or [])]]
    equal("Let me think." in texts, True, f"texts {texts}")
    return f"in {'summary' if items[0].summary else 'content'} of a reasoning item"


def hosted() -> str:
    notes = {"type": "mcp", "server_label": "notes", "server_url": "mcp:notes", "require_approval": "never"}
    declared = {
        "web_search_call": {"type": "web_search"},
        "file_search_call": {"type": "file_search", "vector_store_ids": ["vs_1"]},
        "code_interpreter_call": {"type": "code_interpreter", "container": {"type": "auto"}},
        "mcp_call": notes,
    }
    for name, tool in declared.items():
        whole = client.responses.create(model=MODEL, input="Go", tools=[tool])
        with client.responses.stream(model=MODEL, input="Go", tools=[tool]) as events:
            streamed = events.get_final_response()
        for answer in (whole, streamed):
            called = [item for item in answer.output if item.type == name]
            equal([item.status for item in called], ["completed"], f"status of {name}")
            equal(answer.output_text.startswith("The result is "), True, f"text {answer.output_text!r}")
        followed = client.responses.create(model=MODEL, input="Thanks", previous_response_id=whole.id)
        equal(followed.output_text, GREETING)
    return f"{', '.join(declared)}; whole, streamed and continued"


run(stream=stream, tools=tools, structured=structured, error=error, cancel=cancel, reasoning=reasoning, hosted=hosted)
