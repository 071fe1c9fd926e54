"""CrewAI, with its own client of OpenAI's API (custom_openai)."""

import json
import os
import sys

# It reports its use to its makers otherwise.
os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")
os.environ.setdefault("OTEL_SDK_DISABLED", "true")
# It draws its events as boxes.
sys.stdout = sys.stderr

from crewai import LLM, Agent
from crewai.events import crewai_event_bus
from crewai.events.types.llm_events import LLMStreamChunkEvent
from crewai.tools import tool
from pydantic import BaseModel
from scenarios import GREETING, KEY, MODEL, NO_SUCH_MODEL, RESULT, URL, WEATHER, Missing, equal, fails_once, run


def model(name: str = MODEL, **options):
    return LLM(model=name, custom_openai=True, base_url=f"{URL}/v1", api_key=KEY, **options)


class Person(BaseModel):
    name: str
    age: int
    tags: list[str]


def stream() -> str:
    pieces = []
    with crewai_event_bus.scoped_handlers():

        @crewai_event_bus.on(LLMStreamChunkEvent)
        def piece(source, event) -> None:
            pieces.append(event.chunk)

        equal(model(stream=True).call("Hello"), GREETING)
        crewai_event_bus.flush()
    equal("".join(pieces), GREETING, "pieces")
    return f"{len(pieces)} pieces"


def tools() -> str:
    calls = []

    @tool("get_weather")
    def get_weather(city: str) -> str:
        """The weather in a city."""
        calls.append(city)
        return WEATHER

    agent = Agent(role="Reporter", goal="Report the weather", backstory="Works alone.", llm=model(), tools=[get_weather])
    answer = agent.kickoff("Weather in Paris?").raw
    equal(calls, ["Paris"], "calls")
    equal(answer, RESULT)
    return "1 call by an Agent, then a text"


def structured() -> str:
    answer = model(response_format=Person).call("A person")
    person = answer if isinstance(answer, Person) else Person.model_validate_json(answer)
    return json.dumps(person.model_dump())


def error() -> str:
    try:
        model(NO_SUCH_MODEL).call("Hello")
    except Exception as refused:
        cause = refused
        while cause is not None and getattr(cause, "status_code", None) is None:
            cause = cause.__cause__
        equal(getattr(cause, "status_code", None), 404, f"status of {refused!r}")
        kind = f"{type(refused).__name__} over {type(cause).__name__}"
    else:
        raise AssertionError("an unknown model was answered")
    equal(model().call(fails_once()), GREETING)
    return f"{kind} 404; 503 was tried again"


def cancel() -> str:
    raise Missing("LLM.call has no way to stop a stream")


def reasoning() -> str:
    raise Missing("its answers have a text and tool calls alone")


run(stream=stream, tools=tools, structured=structured, error=error, cancel=cancel, reasoning=reasoning)
