"""One exchange of a conversation, and how the evaluation checks its answer."""

from __future__ import annotations

from dataclasses import dataclass, field

REFUSAL = "Sorry, I cannot do that. I am only a small demo model."
SELF = "I am the Truewire demo, a very small language model."


@dataclass
class Turn:
    """One exchange. `check` tells the evaluation what a right answer is: see heldout.py."""

    skill: str
    user: str
    answer: str
    think: str = ""
    check: dict = field(default_factory=dict)
    styled: bool = True  # may a system prompt's tone change this answer?
    calls: list[dict] = field(default_factory=list)
    results: list[str] = field(default_factory=list)


def exact(answer: str) -> dict:
    return {"exact": answer}


def contains(*parts: object) -> dict:
    return {"contains": [str(p) for p in parts]}
