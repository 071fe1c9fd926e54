"""Conversations as text, by the chat template that ships with the model."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jinja2

TEMPLATE_TEXT = (Path(__file__).parent / "chat_template.jinja").read_text()


def _environment() -> jinja2.Environment:
    env = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    env.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    return env


_TEMPLATE = _environment().from_string(TEMPLATE_TEXT)


def render(messages: list[dict], tools: list[dict] = (), think: bool = False, prompt: bool = False) -> str:
    return _TEMPLATE.render(messages=messages, tools=list(tools), enable_thinking=think, add_generation_prompt=prompt)


_ANSWER = re.compile(r"(?<=<\|im_start\|>assistant\n)(.*?<\|im_end\|>\n)", re.S)


def segments(text: str) -> list[tuple[str, bool]]:
    """The rendered text cut into (piece, is it what the model writes?), for the loss mask."""
    return [(piece, i % 2 == 1) for i, piece in enumerate(_ANSWER.split(text)) if piece]
