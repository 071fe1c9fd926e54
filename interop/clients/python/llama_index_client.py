"""LlamaIndex, with its class for servers that are like OpenAI's."""

import asyncio
import json

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ThinkingBlock
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel
from scenarios import GREETING, KEY, MODEL, NO_SUCH_MODEL, RESULT, SLOWLY, URL, WEATHER, equal, fails_once, run


def model(name: str = MODEL):
    can = {"is_chat_model": True, "is_function_calling_model": True, "should_use_structured_outputs": True}
    return OpenAILike(model=name, api_base=f"{URL}/v1", api_key=KEY, **can)


def said(text: str) -> list:
    return [ChatMessage(role="user", content=text)]


class Person(BaseModel):
    name: str
    age: int
    tags: list[str]


def stream() -> str:
    parts = list(model().stream_chat(said("Hello")))
    equal("".join(part.delta or "" for part in parts), GREETING)
    equal(parts[-1].message.content, GREETING, "last message")
    return f"{len(parts)} parts"


def tools() -> str:
    calls = []

    def get_weather(city: str) -> str:
        """The weather in a city."""
        calls.append(city)
        return WEATHER

    async def loop() -> str:
        return str(await FunctionAgent(tools=[get_weather], llm=model()).run(user_msg="Weather in Paris?"))

    answer = asyncio.run(loop())
    equal(calls, ["Paris"], "calls")
    equal(answer, RESULT)
    return "1 call by a FunctionAgent, then a text"


def structured() -> str:
    person = model().as_structured_llm(Person).chat(said("A person")).raw
    equal(type(person), Person, "parsed")
    return json.dumps(person.model_dump())


def error() -> str:
    try:
        model(NO_SUCH_MODEL).chat(said("Hello"))
    except Exception as refused:
        equal(getattr(refused, "status_code", None), 404, f"status of {refused!r}")
        kind = type(refused).__name__
    else:
        raise AssertionError("an unknown model was answered")
    equal(model().chat(said(fails_once())).message.content, GREETING)
    return f"{kind} 404; 503 was tried again"


def cancel() -> str:
    parts = model().stream_chat(said(SLOWLY))
    first = next(part for part in parts if part.delta)
    parts.close()
    equal(first.delta, "Hello ", "first piece")
    return "closed after the first piece"


def reasoning() -> str:
    blocks = model().chat(said("Hello")).message.blocks
    equal([block.content for block in blocks if isinstance(block, ThinkingBlock)], ["Let me think."], f"thinking in {blocks}")
    return "a ThinkingBlock"


run(stream=stream, tools=tools, structured=structured, error=error, cancel=cancel, reasoning=reasoning)
