"""OpenAI's Python SDK over Chat Completions."""

import json

import openai
from openai import OpenAI, pydantic_function_tool
from pydantic import BaseModel
from scenarios import GREETING, KEY, MODEL, NO_SUCH_MODEL, RESULT, SLOWLY, URL, WEATHER, equal, fails_once, run

client = OpenAI(base_url=f"{URL}/v1", api_key=KEY)


def said(text: str) -> list:
    return [{"role": "user", "content": text}]


class GetWeather(BaseModel):
    city: str


class Person(BaseModel):
    name: str
    age: int
    tags: list[str]


def stream() -> str:
    text, usage, chunks = "", None, 0
    options = {"include_usage": True}
    for chunk in client.chat.completions.create(model=MODEL, messages=said("Hello"), stream=True, stream_options=options):
        chunks += 1
        usage = chunk.usage or usage
        text += "".join(choice.delta.content or "" for choice in chunk.choices)
    equal(text, GREETING)
    return f"{chunks} chunks, usage {usage.to_dict() if usage else None}"


def tools() -> str:
    messages, calls = said("Weather in Paris?"), 0
    while True:
        with client.chat.completions.stream(model=MODEL, messages=messages, tools=[pydantic_function_tool(GetWeather)]) as events:
            message = events.get_final_completion().choices[0].message
        if not message.tool_calls:
            equal(message.content, RESULT)
            return f"{calls} call, then a text"
        messages.append(message)
        for call in message.tool_calls:
            calls += 1
            equal(type(call.function.parsed_arguments), GetWeather, "arguments")
            messages.append({"role": "tool", "tool_call_id": call.id, "content": WEATHER})


def structured() -> str:
    parsed = client.chat.completions.parse(model=MODEL, messages=said("A person"), response_format=Person)
    person = parsed.choices[0].message.parsed
    equal(type(person), Person, "parsed")
    return json.dumps(person.model_dump())


def error() -> str:
    try:
        client.chat.completions.create(model=NO_SUCH_MODEL, messages=said("Hello"))
    except openai.NotFoundError as refused:
        equal((refused.status_code, refused.code), (404, "model_not_found"), "error")
    else:
        raise AssertionError("an unknown model was answered")
    again = client.chat.completions.create(model=MODEL, messages=said(fails_once()))
    equal(again.choices[0].message.content, GREETING)
    return "NotFoundError 404 model_not_found; 503 was tried again"


def cancel() -> str:
    with client.chat.completions.create(model=MODEL, messages=said(SLOWLY), stream=True) as pieces:
        first = next(piece for piece in pieces if piece.choices and piece.choices[0].delta.content)
    equal(first.choices[0].delta.content, "Hello ", "first piece")
    return "closed after the first piece"


def reasoning() -> str:
    answer = client.chat.completions.create(model=MODEL, messages=said("Hello")).choices[0].message
    equal(getattr(answer, "reasoning_content", None), "Let me think.", "message.reasoning_content")
    return "in message.reasoning_content, a member that the SDK does not declare"


run(stream=stream, tools=tools, structured=structured, error=error, cancel=cancel, reasoning=reasoning)
