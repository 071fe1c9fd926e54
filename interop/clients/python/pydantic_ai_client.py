"""Pydantic AI. The argument is the API: chat (default), responses or anthropic."""

import json
import sys

from pydantic import BaseModel
from pydantic_ai import Agent, ModelHTTPError, NativeOutput, ThinkingPart
from scenarios import GREETING, KEY, MODEL, NO_SUCH_MODEL, RESULT, SLOWLY, URL, WEATHER, Missing, equal, fails_once, run

api = sys.argv[1] if len(sys.argv) > 1 else "chat"


def model(name: str = MODEL):
    if api == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        return AnthropicModel(name, provider=AnthropicProvider(api_key=KEY, base_url=URL))
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    kind = OpenAIResponsesModel if api == "responses" else OpenAIChatModel
    return kind(name, provider=OpenAIProvider(base_url=f"{URL}/v1", api_key=KEY))


class Person(BaseModel):
    name: str
    age: int
    tags: list[str]


def stream() -> str:
    answer = Agent(model()).run_stream_sync("Hello")
    pieces = list(answer.stream_text(delta=True, debounce_by=None))
    equal("".join(pieces), GREETING)
    return f"{len(pieces)} pieces"


def tools() -> str:
    calls = []
    agent = Agent(model())

    @agent.tool_plain
    def get_weather(city: str) -> str:
        """The weather in a city."""
        calls.append(city)
        return WEATHER

    answer = agent.run_sync("Weather in Paris?")
    equal(calls, ["Paris"], "calls")
    equal(answer.output, RESULT)
    return f"1 call, then a text; {len(answer.all_messages())} messages"


def structured() -> str:
    details = {}
    # A tool whose call is the value, and a schema in the request (for Anthropic's API only with the models that it knows).
    ways = {"tool": Person} if api == "anthropic" else {"tool": Person, "native": NativeOutput(Person)}
    for name, output in ways.items():
        person = Agent(model(), output_type=output).run_sync("A person").output
        equal(type(person), Person, name)
        details[name] = person.model_dump()
    return json.dumps(details)


def error() -> str:
    try:
        Agent(model(NO_SUCH_MODEL)).run_sync("Hello")
    except ModelHTTPError as refused:
        # OpenAI's Responses API answers 400 here, not 404 as Chat Completions does.
        equal(refused.status_code, 400 if api == "responses" else 404, "status")
        status = refused.status_code
    else:
        raise AssertionError("an unknown model was answered")
    equal(Agent(model()).run_sync(fails_once()).output, GREETING)
    return f"ModelHTTPError {status}; 503 was tried again"


def cancel() -> str:
    import asyncio

    async def first_piece() -> str:
        async with Agent(model()).run_stream(SLOWLY) as answer:
            async for piece in answer.stream_text(delta=True, debounce_by=None):
                return piece
        return ""

    equal(asyncio.run(first_piece()), "Hello ", "first piece")
    return "left after the first piece"


def reasoning() -> str:
    asks = {
        "anthropic": {"anthropic_thinking": {"type": "enabled", "budget_tokens": 1024}},
        "responses": {"openai_reasoning_summary": "auto"},
    }
    answer = Agent(model(), model_settings=asks.get(api)).run_sync("Hello")
    thoughts = [part for message in answer.all_messages() for part in message.parts if isinstance(part, ThinkingPart)]
    if not thoughts:
        raise Missing(f"no ThinkingPart in {answer.all_messages()[-1].parts}")
    equal([part.content for part in thoughts], ["Let me think."], "thinking")
    return f"a ThinkingPart, id {thoughts[0].id!r}"


run(stream=stream, tools=tools, structured=structured, error=error, cancel=cancel, reasoning=reasoning)
