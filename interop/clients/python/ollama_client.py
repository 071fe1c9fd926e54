"""Ollama's Python client."""

import json

from ollama import Client, ResponseError
from pydantic import BaseModel
from scenarios import GREETING, KEY, MODEL, NO_SUCH_MODEL, RESULT, SLOWLY, URL, WEATHER, equal, fails_once, run

client = Client(host=URL, headers={"Authorization": f"Bearer {KEY}"})


def said(text: str) -> list:
    return [{"role": "user", "content": text}]


class Person(BaseModel):
    name: str
    age: int
    tags: list[str]


def stream() -> str:
    text, parts, last = "", 0, None
    for last in client.chat(model=MODEL, messages=said("Hello"), stream=True):
        parts += 1
        text += last.message.content or ""
    equal(text, GREETING)
    equal((last.done, last.done_reason), (True, "stop"), "last part")
    return f"{parts} parts, eval_count {last.eval_count}, total_duration {last.total_duration}"


def tools() -> str:
    calls = []

    def get_weather(city: str) -> str:
        """The weather in a city.

        Args:
            city: The name of the city.
        """
        calls.append(city)
        return WEATHER

    messages = said("Weather in Paris?")
    while True:
        message = client.chat(model=MODEL, messages=messages, tools=[get_weather]).message
        if not message.tool_calls:
            break
        messages.append(message)
        for call in message.tool_calls:
            result = get_weather(**call.function.arguments)
            messages.append({"role": "tool", "tool_name": call.function.name, "content": result})
    equal(calls, ["Paris"], "calls")
    equal(message.content, RESULT)
    return "1 call, then a text"


def structured() -> str:
    answer = client.chat(model=MODEL, messages=said("A person"), format=Person.model_json_schema())
    return json.dumps(Person.model_validate_json(answer.message.content).model_dump())


def error() -> str:
    try:
        client.chat(model=NO_SUCH_MODEL, messages=said("Hello"))
    except ResponseError as refused:
        equal(refused.status_code, 404, "status")
        words = refused.error
    else:
        raise AssertionError("an unknown model was answered")
    try:
        client.chat(model=MODEL, messages=said(fails_once()))
    except ResponseError as refused:
        equal(refused.status_code, 503, "status")
    return f"ResponseError 404 {words!r}; 503 is a ResponseError, too: the client never tries again"


def cancel() -> str:
    parts = client.chat(model=MODEL, messages=said(SLOWLY), stream=True)
    first = next(part for part in parts if part.message.content)
    parts.close()
    equal(first.message.content, "Hello ", "first piece")
    return "closed after the first piece"


def reasoning() -> str:
    message = client.chat(model=MODEL, messages=said("Hello"), think=True).message
    equal((message.thinking, message.content), ("Let me think.", GREETING), "message")
    return "in message.thinking"


run(stream=stream, tools=tools, structured=structured, error=error, cancel=cancel, reasoning=reasoning)
