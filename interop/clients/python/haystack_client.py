"""Haystack."""

import json

import openai
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import tool
from haystack.utils import Secret
from pydantic import BaseModel
from scenarios import GREETING, KEY, MODEL, NO_SUCH_MODEL, RESULT, SLOWLY, URL, WEATHER, Missing, equal, fails_once, run


def generator(name: str = MODEL, **options):
    return OpenAIChatGenerator(model=name, api_base_url=f"{URL}/v1", api_key=Secret.from_token(KEY), **options)


def said(text: str) -> list:
    return [ChatMessage.from_user(text)]


class Person(BaseModel):
    name: str
    age: int
    tags: list[str]


def stream() -> str:
    pieces = []
    reply = generator(streaming_callback=lambda chunk: pieces.append(chunk.content)).run(said("Hello"))["replies"][0]
    equal("".join(pieces), GREETING)
    equal(reply.text, GREETING, "reply")
    return f"{len(pieces)} chunks, usage {reply.meta.get('usage')}"


def tools() -> str:
    calls = []

    @tool
    def get_weather(city: str) -> str:
        """The weather in a city."""
        calls.append(city)
        return WEATHER

    answer = Agent(chat_generator=generator(), tools=[get_weather]).run(messages=said("Weather in Paris?"))
    equal(calls, ["Paris"], "calls")
    equal(answer["messages"][-1].text, RESULT)
    return f"1 call by an Agent, then a text; {len(answer['messages'])} messages"


def structured() -> str:
    reply = generator(generation_kwargs={"response_format": Person}).run(said("A person"))["replies"][0]
    return json.dumps(Person.model_validate_json(reply.text).model_dump())


def error() -> str:
    try:
        generator(NO_SUCH_MODEL).run(said("Hello"))
    except openai.NotFoundError as refused:
        equal(refused.status_code, 404, "status")
    else:
        raise AssertionError("an unknown model was answered")
    equal(generator().run(said(fails_once()))["replies"][0].text, GREETING)
    return "openai.NotFoundError 404; 503 was tried again"


def cancel() -> str:
    class Stop(Exception):
        pass

    def stop(chunk) -> None:
        if chunk.content:
            raise Stop(chunk.content)

    try:
        generator(streaming_callback=stop).run(said(SLOWLY))
    except Stop as stopped:
        equal(str(stopped), "Hello ", "first piece")
        return "its callback threw at the first piece"
    raise AssertionError("the stream was not stopped")


def reasoning() -> str:
    thought = generator().run(said("Hello"))["replies"][0].reasoning
    if thought is None:
        raise Missing("OpenAIChatGenerator drops reasoning_content, which is not a member of OpenAI's own answer")
    equal(thought.reasoning_text, "Let me think.", "reasoning")
    return "in ChatMessage.reasoning"


run(stream=stream, tools=tools, structured=structured, error=error, cancel=cancel, reasoning=reasoning)
