"""LiteLLM as a library. The argument is the provider: openai (default), anthropic or ollama_chat."""

import json
import os
import sys

# It asks the network for the prices of models otherwise.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

import litellm
from pydantic import BaseModel
from scenarios import GREETING, KEY, MODEL, NO_SUCH_MODEL, RESULT, SLOWLY, URL, WEATHER, Missing, equal, fails_once, run

provider = sys.argv[1] if len(sys.argv) > 1 else "openai"
base = f"{URL}/v1" if provider == "openai" else URL
litellm.suppress_debug_info = True

GET_WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


class Person(BaseModel):
    name: str
    age: int
    tags: list[str]


def said(text: str) -> list:
    return [{"role": "user", "content": text}]


def ask(messages: list, name: str = MODEL, **options):
    return litellm.completion(model=f"{provider}/{name}", messages=messages, api_base=base, api_key=KEY, **options)


def stream() -> str:
    chunks = list(ask(said("Hello"), stream=True, stream_options={"include_usage": True}))
    whole = litellm.stream_chunk_builder(chunks, messages=said("Hello"))
    equal(whole.choices[0].message.content, GREETING)
    return f"{len(chunks)} chunks, total_tokens {whole.usage.total_tokens}"


def tools() -> str:
    messages, calls = said("Weather in Paris?"), []
    while True:
        message = ask(messages, tools=[GET_WEATHER]).choices[0].message
        if not message.tool_calls:
            break
        messages.append(message)
        for call in message.tool_calls:
            calls.append(json.loads(call.function.arguments)["city"])
            messages.append({"role": "tool", "tool_call_id": call.id, "content": WEATHER})
    equal(calls, ["Paris"], "calls")
    equal(message.content, RESULT)
    return "1 call, then a text"


def structured() -> str:
    text = ask(said("A person"), response_format=Person).choices[0].message.content
    return json.dumps(Person.model_validate_json(text).model_dump())


def error() -> str:
    try:
        ask(said("Hello"), name=NO_SUCH_MODEL)
    except Exception as refused:
        kind = f"{type(refused).__name__} {getattr(refused, 'status_code', None)}"
        if not isinstance(refused, litellm.NotFoundError):
            raise AssertionError(f"expected NotFoundError, found {refused!r}") from refused
    else:
        raise AssertionError("an unknown model was answered")
    equal(ask(said(fails_once()), num_retries=2).choices[0].message.content, GREETING)
    return f"{kind}; 503 was tried again (num_retries)"


def cancel() -> str:
    chunks = ask(said(SLOWLY), stream=True)
    first = next(chunk for chunk in chunks if chunk.choices[0].delta.content)
    # It has no close; the answer ends with the iterator.
    del chunks
    equal(first.choices[0].delta.content, "Hello ", "first piece")
    return "dropped after the first piece"


def reasoning() -> str:
    options = {
        # It sends `thinking` for models that it knows alone, without this list.
        "anthropic": {
            "thinking": {"type": "enabled", "budget_tokens": 1024},
            "max_tokens": 2048,
            "allowed_openai_params": ["thinking"],
        },
        "ollama_chat": {"think": True},
    }
    message = ask(said("Hello"), **options.get(provider, {})).choices[0].message
    thought = getattr(message, "reasoning_content", None)
    if thought is None:
        raise Missing(f"no reasoning_content in {message}")
    equal(thought, "Let me think.", "reasoning_content")
    return "in message.reasoning_content"


run(stream=stream, tools=tools, structured=structured, error=error, cancel=cancel, reasoning=reasoning)
