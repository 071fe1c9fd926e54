"""OGX' client under its former name: tests ask whether a client is one of it."""

from openai import APIStatusError, BadRequestError  # noqa: F401


class LlamaStackClient:
    pass
