"""AutoGen."""

import asyncio
import json

import openai
from autogen_agentchat.agents import AssistantAgent
from autogen_core import CancellationToken
from autogen_core.models import CreateResult, ModelFamily, UserMessage
from autogen_ext.models.openai import OpenAIChatCompletionClient
from pydantic import BaseModel
from scenarios import GREETING, KEY, MODEL, NO_SUCH_MODEL, RESULT, SLOWLY, URL, WEATHER, equal, fails_once, run

CAN = {"vision": False, "function_calling": True, "json_output": True, "structured_output": True}


def model(name: str = MODEL, family: str = ModelFamily.UNKNOWN):
    info = {**CAN, "family": family}
    return OpenAIChatCompletionClient(model=name, base_url=f"{URL}/v1", api_key=KEY, model_info=info)


def said(text: str) -> list:
    return [UserMessage(content=text, source="user")]


class Person(BaseModel):
    name: str
    age: int
    tags: list[str]


async def stream() -> str:
    pieces, last = [], None
    async for part in model().create_stream(said("Hello")):
        if isinstance(part, CreateResult):
            last = part
        else:
            pieces.append(part)
    equal(last.content, GREETING)
    return f"{len(pieces)} pieces {pieces}, usage {last.usage}"


async def tools() -> str:
    calls = []

    async def get_weather(city: str) -> str:
        """The weather in a city."""
        calls.append(city)
        return WEATHER

    agent = AssistantAgent("assistant", model_client=model(), tools=[get_weather], reflect_on_tool_use=True)
    messages = (await agent.run(task="Weather in Paris?")).messages
    equal(calls, ["Paris"], "calls")
    equal(messages[-1].content, RESULT)
    return f"1 call by an AssistantAgent, then a text; {len(messages)} messages"


async def structured() -> str:
    answer = await model().create(said("A person"), json_output=Person)
    return json.dumps(Person.model_validate_json(answer.content).model_dump())


async def error() -> str:
    try:
        await model(NO_SUCH_MODEL).create(said("Hello"))
    except openai.NotFoundError as refused:
        equal(refused.status_code, 404, "status")
    else:
        raise AssertionError("an unknown model was answered")
    equal((await model().create(said(fails_once()))).content, GREETING)
    return "openai.NotFoundError 404; 503 was tried again"


async def cancel() -> str:
    token = CancellationToken()
    try:
        async for part in model().create_stream(said(SLOWLY), cancellation_token=token):
            if part == "Hello ":
                token.cancel()
    except asyncio.CancelledError:
        return "CancelledError after the first piece"
    raise AssertionError("the stream was not cancelled")


async def reasoning() -> str:
    answer = await model().create(said("Hello"))
    equal((answer.thought, answer.content), ("Let me think.", GREETING), "thought")
    return "in CreateResult.thought"


def sync(scenario):
    return lambda: asyncio.run(scenario())


scenarios = {"stream": stream, "tools": tools, "structured": structured, "error": error, "cancel": cancel, "reasoning": reasoning}
run(**{name: sync(scenario) for name, scenario in scenarios.items()})
