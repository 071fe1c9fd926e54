"""DSPy, with the adapter that asks for a JSON schema (the others ask in words, which the scripted model does not read)."""

import asyncio
import json
import os
from typing import Any

# LiteLLM, which DSPy uses, asks the network for the prices of models otherwise.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

import dspy
import litellm
from scenarios import GREETING, KEY, MODEL, NO_SUCH_MODEL, SLOWLY, URL, WEATHER, equal, fails_once, run


# DSPy asks LiteLLM what a model can, and LiteLLM looks in its list of known models.
CAN = {"supports_response_schema": True, "supports_function_calling": True}
litellm.register_model({f"openai/{MODEL}": {"litellm_provider": "openai", "mode": "chat", **CAN}})


def model(name: str = MODEL, **options):
    return dspy.LM(f"openai/{name}", api_base=f"{URL}/v1", api_key=KEY, cache=False, engine="litellm", **options)


def text_of(output: Any) -> str:
    return output["text"] if isinstance(output, dict) else output


def stream() -> str:
    dspy.configure(lm=model(), adapter=dspy.JSONAdapter())
    listener = dspy.streaming.StreamListener(signature_field_name="answer")
    ask = dspy.streamify(dspy.Predict("question -> answer"), stream_listeners=[listener], async_streaming=False)
    parts = list(ask(question="Hello"))
    equal(parts[-1].answer, "Paris", "answer")
    return f"{len(parts)} parts, the last of them a {type(parts[-1]).__name__}"


def tools() -> str:
    calls = []

    def get_weather(city: str) -> str:
        """The weather in a city."""
        calls.append(city)
        return WEATHER

    dspy.configure(lm=model(), adapter=dspy.JSONAdapter(use_native_function_calling=True))

    class Ask(dspy.Signature):
        """Call tools."""

        question: str = dspy.InputField()
        tools: list[dspy.Tool] = dspy.InputField()
        calls: dspy.ToolCalls = dspy.OutputField()

    asked = dspy.Predict(Ask)(question="Weather in Paris?", tools=[dspy.Tool(get_weather)]).calls
    for call in asked.tool_calls:
        get_weather(**call.args)
    equal(calls, ["Paris"], "calls")
    return "1 call; DSPy puts its result into the next prompt, not into a message of a tool"


def structured() -> str:
    class Person(dspy.Signature):
        """Describe a person."""

        question: str = dspy.InputField()
        name: str = dspy.OutputField()
        age: int = dspy.OutputField()
        tags: list[str] = dspy.OutputField()

    dspy.configure(lm=model(), adapter=dspy.JSONAdapter())
    answer = dspy.Predict(Person)(question="Who?")
    equal((answer.name, answer.age, answer.tags), ("Paris", 21, ["Paris"]), "outputs")
    return json.dumps(dict(answer.items()))


def error() -> str:
    try:
        model(NO_SUCH_MODEL)("Hello")
    except Exception as refused:
        equal(getattr(refused, "status", None), 404, f"status of {refused!r}")
        kind = f"{type(refused).__module__}.{type(refused).__name__}"
    else:
        raise AssertionError("an unknown model was answered")
    equal(text_of(model()(fails_once())[0]), GREETING)
    return f"{kind} 404; 503 was tried again"


def cancel() -> str:
    dspy.configure(lm=model(), adapter=dspy.JSONAdapter())
    ask = dspy.streamify(dspy.Predict("question -> answer"))

    async def first_part() -> str:
        async for part in ask(question=SLOWLY):
            return type(part).__name__
        return ""

    return f"left after the first part, a {asyncio.run(first_part())}"


def reasoning() -> str:
    output = model()("Hello")[0]
    equal(output.get("reasoning_content") if isinstance(output, dict) else output, "Let me think.", "reasoning_content")
    return "in the output's reasoning_content"


run(stream=stream, tools=tools, structured=structured, error=error, cancel=cancel, reasoning=reasoning)
