"""smolagents."""

import json

import openai
from scenarios import GREETING, KEY, MODEL, NO_SUCH_MODEL, RESULT, SLOWLY, URL, WEATHER, Missing, equal, fails_once, run
from smolagents import OpenAIModel, ToolCallingAgent, tool


def model(name: str = MODEL, **options):
    return OpenAIModel(model_id=name, api_base=f"{URL}/v1", api_key=KEY, **options)


def said(text: str) -> list:
    return [{"role": "user", "content": [{"type": "text", "text": text}]}]


def stream() -> str:
    pieces = list(model().generate_stream(said("Hello")))
    equal("".join(piece.content or "" for piece in pieces), GREETING)
    return f"{len(pieces)} pieces, usage {[piece.token_usage for piece in pieces if piece.token_usage]}"


def tools() -> str:
    calls = []

    @tool
    def get_weather(city: str) -> str:
        """The weather in a city.

        Args:
            city: The name of the city.
        """
        calls.append(city)
        return WEATHER

    # It sends a tool's result as the text of a user, and ends with a call of its tool final_answer.
    answer = ToolCallingAgent(tools=[get_weather], model=model(), max_steps=3, verbosity_level=0).run("Weather in Paris?")
    equal(calls, ["Paris"], "calls")
    equal(answer, RESULT)
    return "1 call, then final_answer"


def structured() -> str:
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "json_schema": {"name": "person", "schema": schema, "strict": True}}
    person = json.loads(model().generate(said("A person"), response_format=form).content)
    equal(sorted(person), ["age", "name"], "members")
    return json.dumps(person)


def error() -> str:
    try:
        model(NO_SUCH_MODEL).generate(said("Hello"))
    except openai.NotFoundError as refused:
        equal(refused.status_code, 404, "status")
    else:
        raise AssertionError("an unknown model was answered")
    equal(model().generate(said(fails_once())).content, GREETING)
    return "openai.NotFoundError 404; 503 was tried again"


def cancel() -> str:
    pieces = model().generate_stream(said(SLOWLY))
    first = next(piece for piece in pieces if piece.content)
    pieces.close()
    equal(first.content, "Hello ", "first piece")
    return "closed after the first piece"


def reasoning() -> str:
    raise Missing("its messages have content and tool calls alone")


run(stream=stream, tools=tools, structured=structured, error=error, cancel=cancel, reasoning=reasoning)
