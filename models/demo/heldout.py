"""Writes the evaluation: chat requests about held-out values in held-out phrasings, and what a right answer is.

    python heldout.py --out eval.jsonl
    python heldout.py --against 50000     also make so many training conversations and name those that hold a request of it

Each line: {"id", "skill", "request": <body of a chat completion, less model>, "check": {...}}. A check has one or more of
`exact` (the trimmed text), `contains` (each of these), `starts` / `ends`, `calls` (names and arguments, in order),
`no_calls`, `json` (the parsed text), `reasoning` (some, and not in the text). Every answer must also stop by itself.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Callable

import data
import phrases
import skills
import tools as catalogue
from data import Conversation, assemble
from json_turn import json_object
from memory import memory as memory_turns
from offers import Offer, offer
from styles import Style, style
from tool_turns import tool_turn
from turn import Turn, contains
from world import World

SEED = 20_000


def request(c: Conversation, upto: int | None = None) -> dict:
    """The conversation as a request: without its last answer (or cut before message `upto`)."""
    last = upto if upto is not None else max(i for i, m in enumerate(c.messages) if m["role"] == "assistant")
    messages = []
    for m in c.messages[:last]:
        m = {k: v for k, v in m.items() if k != "reasoning_content"}
        if "tool_calls" in m:
            m["tool_calls"] = [{**t, "function": {**t["function"], "arguments": json.dumps(t["function"]["arguments"], ensure_ascii=False)}} for t in m["tool_calls"]]
        messages.append(m)
    body: dict = {"messages": messages}
    if c.tools:
        body["tools"] = c.tools
    if c.think:
        body["chat_template_kwargs"] = {"enable_thinking": True}
    return body


def without_luck(w: World) -> World:
    """Assembling must not sprinkle "think first" over evaluation prompts."""
    calm = World(w.rng, w.held)
    calm.chance = lambda p: False if p == 0.04 else w.rng.random() < p  # type: ignore[method-assign]
    return calm


def single(make: Callable[[World], Turn], skill: str, told: Style = Style(), think: bool = False):
    def item(w: World) -> tuple[dict, dict]:
        while True:
            turn = make(w)
            if turn.skill == skill or think:
                break
        c = assemble(without_luck(w), [turn], told, [], think)
        return request(c), {**turn.check, **({"reasoning": True} if think else {})}

    return item


def thinking(w: World) -> tuple[dict, dict]:
    return single(skills.plain_turn, "", think=True)(w)


def system(w: World) -> tuple[dict, dict]:
    """A name, a tone, a first or a last word set by the system prompt."""
    while True:
        told = style(w)
        if told.start or told.end or told.name:
            break
    if told.name and (not told.start and not told.end or w.chance(0.4)):
        turn = next(t for t in iter(lambda: skills.chat(w), None) if t.skill == "identity")
    else:
        turn = skills.plain_turn(w)
    c = assemble(without_luck(w), [turn], told, [], False)
    check = dict(turn.check)
    if "exact" in check:
        check = contains(check["exact"])
    if told.start:
        check["starts"] = told.start
    if told.end:
        check["ends"] = told.end
    return request(c), check


def memory(w: World) -> tuple[dict, dict]:
    turns = memory_turns(w, Style())
    c = assemble(without_luck(w), turns, Style(), [], False)
    return request(c), turns[-1].check


def json_schema(value: dict) -> dict:
    kinds = {str: "string", bool: "boolean", int: "integer"}
    properties = {k: {"type": kinds[type(v)]} if type(v) in kinds else {"type": "array", "items": {"type": "string"}} for k, v in value.items()}
    schema = {"type": "object", "properties": properties, "required": list(value), "additionalProperties": False}
    return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}


def json_answer(w: World) -> tuple[dict, dict]:
    turn = json_object(w)
    c = assemble(without_luck(w), [turn], Style(), [], False)
    return {**request(c), "response_format": json_schema(turn.check["json"])}, turn.check


def _offers(w: World, pool: list[catalogue.Tool], first: list[catalogue.Tool], change: bool) -> list[Offer]:
    """The wanted tools, then up to three others of the pool."""
    others = [t for t in w.rng.sample(pool, 3) if t.name not in [f.name for f in first]]
    return [offer(w, t, change) for t in first + others[: w.rng.choice([0, 1, 2, 3])]]


def _called(w: World, offered: list[Offer], chosen: list[Offer]) -> tuple[Conversation, Turn]:
    turn = tool_turn(w, chosen)
    shuffled = list(offered)
    w.rng.shuffle(shuffled)
    return assemble(without_luck(w), [turn], Style(), shuffled, False), turn


def _first_call(c: Conversation, turn: Turn) -> tuple[dict, dict]:
    return request(c, next(i for i, m in enumerate(c.messages) if "tool_calls" in m)), turn.check


def tool_seen(w: World) -> tuple[dict, dict]:
    first = catalogue.FAMILIAR[:4] if w.chance(0.5) else catalogue.FAMILIAR
    offered = _offers(w, catalogue.FAMILIAR, [w.rng.choice(first)], False)
    return _first_call(*_called(w, offered, offered[:1]))


def tool_unseen(w: World) -> tuple[dict, dict]:
    if w.chance(0.75):
        offered = _offers(w, catalogue.UNFAMILIAR, [w.rng.choice(catalogue.UNFAMILIAR)], False)
    else:
        offered = _offers(w, catalogue.FAMILIAR, [w.rng.choice(catalogue.FAMILIAR)], True)
    return _first_call(*_called(w, offered, offered[:1]))


def tool_parallel(w: World) -> tuple[dict, dict]:
    twice = [t for t in catalogue.FAMILIAR if t.name in phrases.TWICE]
    if w.chance(0.6):
        offered = _offers(w, catalogue.FAMILIAR, [w.rng.choice(twice)], False)
        chosen = offered[:1] * 2
    else:
        offered = _offers(w, catalogue.FAMILIAR, w.rng.sample(catalogue.FAMILIAR, 2), False)
        chosen = offered[:2]
    return _first_call(*_called(w, offered, chosen))


def tool_answer(w: World) -> tuple[dict, dict]:
    offered = _offers(w, catalogue.FAMILIAR, w.rng.sample(catalogue.FAMILIAR, w.rng.choice([1, 1, 2])), False)
    chosen = offered[: 2 if len(offered) > 1 and w.chance(0.3) else 1]
    c, turn = _called(w, offered, chosen)
    return request(c), {"exact": turn.answer}


def tool_none(w: World) -> tuple[dict, dict]:
    offered = _offers(w, catalogue.FAMILIAR, [w.rng.choice(catalogue.FAMILIAR)], False)
    while (turn := data.side_turn(w, offered)).skill == "refusal":
        pass
    c = assemble(without_luck(w), [turn], Style(), offered, False)
    return request(c), {**turn.check, "no_calls": True}


def tool_required(w: World) -> tuple[dict, dict]:
    body, check = w.rng.choice([tool_seen, tool_unseen])(w)
    return {**body, "tool_choice": "required"}, check


SKILLS: dict[str, tuple[int, Callable[[World], tuple[dict, dict]]]] = {
    "count": (25, single(skills.count, "count")),
    "spell": (25, single(skills.spell, "spell")),
    "reverse": (25, single(skills.reverse, "reverse")),
    "repeat": (25, single(skills.repeat, "repeat")),
    "upper": (25, single(skills.upper, "upper")),
    "arithmetic": (40, single(skills.arithmetic, "arithmetic")),
    "calendar": (25, single(skills.calendar, "calendar")),
    "capital": (25, single(skills.capital, "capital")),
    "colour": (15, single(skills.colour, "colour")),
    "list": (30, single(skills.lists, "list")),
    "chat": (25, single(skills.chat, "chat")),
    "identity": (10, single(skills.chat, "identity")),
    "refusal": (25, single(skills.chat, "refusal")),
    "system": (40, system),
    "memory": (40, memory),
    "json": (40, json_answer),
    "think": (25, thinking),
    "tool_seen": (70, tool_seen),
    "tool_unseen": (70, tool_unseen),
    "tool_parallel": (30, tool_parallel),
    "tool_answer": (30, tool_answer),
    "tool_none": (25, tool_none),
    "tool_required": (30, tool_required),
}


def items() -> list[dict]:
    made = []
    for number, (skill, (count, make)) in enumerate(SKILLS.items()):
        w = World(random.Random(SEED + number), held=True)
        for i in range(count):
            body, check = make(w)
            made.append({"id": f"{skill}-{i + 1}", "skill": skill, "request": body, "check": check})
    return made


def main() -> None:
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--out", type=Path, default=Path(__file__).parent / "eval.jsonl")
    args.add_argument("--against", type=int, default=0)
    options = args.parse_args()
    made = items()
    options.out.write_text("".join(json.dumps(item, ensure_ascii=False) + "\n" for item in made))
    print(f"{len(made)} prompts in {options.out}")
    if options.against:
        leaks(made, options.against)


def leaks(made: list[dict], conversations: int) -> None:
    """Says which last messages of the evaluation a stretch of training text holds word for word."""
    asked = {phrases.bare(item["request"]["messages"][-1]["content"]): item["id"] for item in made if item["request"]["messages"][-1]["role"] == "user"}
    w = World(random.Random(7))
    met = [m["content"] for _ in range(conversations) for m in data.conversation(w).messages if m["role"] == "user"]
    found = sorted({text for text in met if phrases.bare(text) in asked})
    print(f"{len(found)} of {len(asked)} held-out requests in {len(met)} training ones", *found, sep="\n  ")


if __name__ == "__main__":
    main()
