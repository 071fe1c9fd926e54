"""Google's Python client, google-genai."""

import json

from google import genai
from google.genai import errors, types
from pydantic import BaseModel
from scenarios import GREETING, KEY, MODEL, NO_SUCH_MODEL, RESULT, SLOWLY, URL, WEATHER, equal, fails_once, run

client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=URL))


class Person(BaseModel):
    name: str
    age: int
    tags: list[str]


def stream() -> str:
    text, chunks, last = "", 0, None
    for last in client.models.generate_content_stream(model=MODEL, contents="Hello"):
        chunks += 1
        text += last.text or ""
    equal(text, GREETING)
    equal(last.candidates[0].finish_reason, types.FinishReason.STOP, "finish reason")
    # A program that counts no tokens has no usage.
    usage = last.usage_metadata
    return f"{chunks} chunks, total_token_count {usage.total_token_count if usage else None}"


def tools() -> str:
    calls = []

    def get_weather(city: str) -> str:
        """The weather in a city."""
        calls.append(city)
        return WEATHER

    # The client itself runs the function, and asks again.
    config = types.GenerateContentConfig(tools=[get_weather])
    answer = client.models.generate_content(model=MODEL, contents="Weather in Paris?", config=config)
    equal(calls, ["Paris"], "calls")
    equal(answer.text, RESULT)
    return "1 call, then a text"


def structured() -> str:
    config = types.GenerateContentConfig(response_mime_type="application/json", response_schema=Person)
    answer = client.models.generate_content(model=MODEL, contents="A person", config=config)
    return json.dumps(Person.model_validate(answer.parsed).model_dump())


def error() -> str:
    try:
        client.models.generate_content(model=NO_SUCH_MODEL, contents="Hello")
    except errors.ClientError as refused:
        equal((refused.code, refused.status), (404, "NOT_FOUND"), "status")
        words = refused.message
    else:
        raise AssertionError("an unknown model was answered")
    try:
        client.models.generate_content(model=MODEL, contents=fails_once())
    except errors.ServerError as refused:
        equal(refused.code, 503, "status")
        return f"ClientError 404 {words!r}; 503 is a ServerError"
    return f"ClientError 404 {words!r}; 503 was tried again"


def cancel() -> str:
    chunks = client.models.generate_content_stream(model=MODEL, contents=SLOWLY)
    first = next(chunk for chunk in chunks if chunk.text)
    chunks.close()
    equal(first.text, "Hello ", "first piece")
    return "closed after the first piece"


def reasoning() -> str:
    config = types.GenerateContentConfig(thinking_config=types.ThinkingConfig(include_thoughts=True))
    answer = client.models.generate_content(model=MODEL, contents="Hello", config=config)
    thoughts = [part.text for part in answer.candidates[0].content.parts if part.thought]
    equal((thoughts, answer.text), (["Let me think."], GREETING), "parts")
    return "in a part with thought"


run(stream=stream, tools=tools, structured=structured, error=error, cancel=cancel, reasoning=reasoning)
