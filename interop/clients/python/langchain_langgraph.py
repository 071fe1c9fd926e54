"""LangChain and LangGraph. The argument is the API: openai (default), anthropic or ollama."""

import json
import sys

from langchain.agents import create_agent
from langchain_core.tools import tool
from pydantic import BaseModel
from scenarios import GREETING, KEY, MODEL, NO_SUCH_MODEL, RESULT, SLOWLY, URL, WEATHER, Missing, equal, fails_once, run

api = sys.argv[1] if len(sys.argv) > 1 else "openai"


def model(name: str = MODEL):
    if api == "anthropic":
        from langchain_anthropic import ChatAnthropic

        return ChatAnthropic(model=name, base_url=URL, api_key=KEY, max_tokens=2048)
    if api == "ollama":
        from langchain_ollama import ChatOllama

        return ChatOllama(model=name, base_url=URL, client_kwargs={"headers": {"Authorization": f"Bearer {KEY}"}})
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model=name, base_url=f"{URL}/v1", api_key=KEY)


class Person(BaseModel):
    """A person."""

    name: str
    age: int
    tags: list[str]


def stream() -> str:
    whole, chunks = None, 0
    for chunk in model().stream("Hello"):
        chunks += 1
        whole = chunk if whole is None else whole + chunk
    equal(whole.text, GREETING)
    return f"{chunks} chunks, usage {whole.usage_metadata}"


def tools() -> str:
    calls = []

    @tool
    def get_weather(city: str) -> str:
        """The weather in a city."""
        calls.append(city)
        return WEATHER

    # LangGraph's loop.
    agent = create_agent(model(), [get_weather])
    messages = agent.invoke({"messages": [("user", "Weather in Paris?")]})["messages"]
    equal(calls, ["Paris"], "calls")
    equal(messages[-1].text, RESULT)
    return f"1 call, then a text; {len(messages)} messages in the graph's state"


def structured() -> str:
    person = model().with_structured_output(Person, method="json_schema").invoke("A person")
    equal(type(person), Person, "parsed")
    return json.dumps(person.model_dump())


def error() -> str:
    try:
        model(NO_SUCH_MODEL).invoke("Hello")
    except Exception as refused:
        equal(getattr(refused, "status_code", None), 404, f"status of {refused!r}")
        kind = type(refused).__name__
    else:
        raise AssertionError("an unknown model was answered")
    if api == "ollama":
        return f"{kind} 404; the client never tries again"
    equal(model().invoke(fails_once()).text, GREETING)
    return f"{kind} 404; 503 was tried again"


def cancel() -> str:
    pieces = model().stream(SLOWLY)
    first = next(piece for piece in pieces if piece.text)
    pieces.close()
    equal(first.text, "Hello ", "first piece")
    return "closed after the first piece"


def reasoning() -> str:
    if api == "openai":
        answer = model().invoke("Hello")
        if any(block["type"] == "reasoning" for block in answer.content_blocks):
            return "in content_blocks"
        raise Missing("ChatOpenAI drops reasoning_content, which is not a member of OpenAI's own answer")
    bound = model().bind(thinking={"type": "enabled", "budget_tokens": 1024}) if api == "anthropic" else model().bind(reasoning=True)
    blocks = [block for block in bound.invoke("Hello").content_blocks if block["type"] == "reasoning"]
    equal([block["reasoning"] for block in blocks], ["Let me think."], "reasoning")
    return "in content_blocks"


def hosted() -> str:
    if api == "ollama":
        raise Missing("Ollama's API has no hosted tools")
    search = {"type": "web_search_20250305", "name": "web_search"} if api == "anthropic" else {"type": "web_search"}
    bound, whole = model().bind_tools([search]), None
    for chunk in bound.stream("Go"):
        whole = chunk if whole is None else whole + chunk
    for answer in (bound.invoke("Go"), whole):
        equal(answer.text.startswith("The result is "), True, f"text {answer.text!r}")
        called = [block for block in answer.content_blocks if block["type"] == "server_tool_call"]
        equal([block["name"] for block in called], ["web_search"], "calls")
        # The search is part of the next turn.
        equal(bound.invoke([("user", "Go"), answer, ("user", "Thanks")]).text != "", True, "the next turn")
    return "web_search, whole, streamed and in the next turn"


run(stream=stream, tools=tools, structured=structured, error=error, cancel=cancel, reasoning=reasoning, hosted=hosted)
