"""instructor, which asks for structured output in the ways that it knows. It has nothing else."""

import json

import instructor
from instructor.core import InstructorRetryException
from pydantic import BaseModel
from scenarios import KEY, MODEL, NO_SUCH_MODEL, SLOWLY, URL, Missing, equal, run

MODES = ("TOOLS", "TOOLS_STRICT", "JSON", "JSON_SCHEMA", "MD_JSON")


class Person(BaseModel):
    name: str
    age: int
    tags: list[str]


def client(mode: str = "TOOLS"):
    from openai import OpenAI

    return instructor.from_openai(OpenAI(base_url=f"{URL}/v1", api_key=KEY), mode=instructor.Mode[mode])


def asked(text: str = "A person", name: str = MODEL) -> dict:
    return {"model": name, "messages": [{"role": "user", "content": text}]}


def stream() -> str:
    parts = list(client().create_partial(response_model=Person, **asked()))
    equal(parts[-1].model_dump(), {"name": "Paris", "age": 21, "tags": ["Paris"]}, "last part")
    return f"{len(parts)} partial values"


def tools() -> str:
    raise Missing("it uses a tool's call for the value; it has no loop")


def structured() -> str:
    details = {}
    for mode in MODES:
        if mode not in instructor.Mode.__members__:
            continue
        try:
            details[mode] = client(mode).create(response_model=Person, max_retries=1, **asked()).model_dump()
        except Exception as failed:
            # JSON and MD_JSON send the schema in words, which the scripted model does not read.
            if mode not in ("JSON", "MD_JSON"):
                raise
            details[mode] = f"{type(failed).__name__}: the model reads no schema in a prompt"
    return json.dumps(details)


def error() -> str:
    try:
        client().create(response_model=Person, max_retries=1, **asked(name=NO_SUCH_MODEL))
    except InstructorRetryException as refused:
        cause = refused.__cause__
        while cause is not None and getattr(cause, "status_code", None) is None:
            cause = cause.__cause__
        equal(getattr(cause, "status_code", None), 404, f"status of {refused!r}")
        return f"InstructorRetryException over {type(cause).__name__} 404"
    raise AssertionError("an unknown model was answered")


def cancel() -> str:
    parts = client().create_partial(response_model=Person, **asked(SLOWLY))
    if isinstance(parts, list):
        raise Missing("create_partial reads the whole stream into a list before it returns")
    next(parts)
    parts.close()
    return "closed after the first partial value"


def reasoning() -> str:
    raise Missing("it reads the value alone")


run(stream=stream, tools=tools, structured=structured, error=error, cancel=cancel, reasoning=reasoning)
