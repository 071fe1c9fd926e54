"""The demo model's training text: seeded, synthetic conversations about a small world.

A *skill* makes one exchange (turn.py): what the user says, what the model should answer, what it might think first and
how the evaluation checks an answer. `conversation()` puts one to five turns together with a system prompt and tools;
render.py makes text of them. The same code makes the evaluation (heldout.py), in a held-out world: see world.py,
words.py, phrases.py and tools.py for the split.

    python data.py            prints a few samples
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import phrases
import tools as catalogue
from json_turn import json_object
from memory import memory
from offers import Offer, offer, offers
from render import render
from skills import chat, identity, plain_turn, repeat, spell, upper
from styles import Style, style
from tool_turns import missing_tool, tool_turn
from turn import Turn, contains
from wording import dress
from world import World


@dataclass
class Conversation:
    messages: list[dict]
    tools: list[dict]
    think: bool
    turns: list[Turn]


def assemble(w: World, turns: list[Turn], told: Style, offered: list[Offer], think: bool) -> Conversation:
    """Messages in OpenAI's form, as the server would hand them to the template."""
    messages: list[dict] = [{"role": "system", "content": told.system}] if told.system else []
    for turn in turns:
        if turn.skill == "identity" and told.name:
            turn.answer, turn.check = f"I am {told.name}.", contains(told.name)
        thinks = think
        user = turn.user
        if not think and turn.skill != "json" and "\n" not in user and w.chance(0.04):
            user, thinks = _ask_to_think(w, user), True
        messages.append({"role": "user", "content": user})
        turn.user = user
        answer = told.apply(turn.answer) if turn.styled else turn.answer
        thought = {"reasoning_content": turn.think} if thinks else {}
        if turn.calls:
            calls = [{"id": f"call_{i}", "type": "function", "function": c} for i, c in enumerate(turn.calls)]
            messages.append({"role": "assistant", "content": None, "tool_calls": calls, **thought})
            messages += [{"role": "tool", "tool_call_id": f"call_{i}", "content": r} for i, r in enumerate(turn.results)]
            messages.append({"role": "assistant", "content": answer})
        else:
            messages.append({"role": "assistant", "content": answer, **thought})
    return Conversation(messages, [o.spec for o in offered], think, turns)


def _ask_to_think(w: World, user: str) -> str:
    order = dress(w, w.of(phrases.PHRASES["think"]).lstrip("!"))
    if w.chance(0.5):
        return f"{order.rstrip('.')}. {user}"
    return f"{user.rstrip('.')}{'' if user.endswith(('?', '!')) else '.'} {order}"


def conversation(w: World) -> Conversation:
    told = style(w)
    think = w.chance(0.1)
    offered: list[Offer] = []
    turns: list[Turn] = []
    if w.chance(0.5):
        wanted = w.rng.choice([1, 1, 1, 2, 2])
        offered = offers(w, wanted)
        turns = [] if w.chance(0.12) else [tool_turn(w, _choose(w, offered, wanted))]
        while turns and len(turns) < 5 and w.chance(0.65):  # the declarations are long: ask more than once for their price
            turns.append(tool_turn(w, w.rng.sample(offered, 2) if len(offered) > 1 and w.chance(0.3) else [w.rng.choice(offered)] * w.rng.choice([1, 1, 2])))
        w.rng.shuffle(offered)
        if not turns or w.chance(0.2):
            turns.insert(w.rng.randint(0, len(turns)), side_turn(w, offered))
    elif w.chance(0.22):
        turns = memory(w, told)
    elif w.chance(0.26):
        turns = [json_object(w)]
        if w.chance(0.3):
            turns.insert(w.rng.randint(0, 1), w.rng.choice([plain_turn, json_object])(w))
    else:
        turns = [missing_tool(w, []) if w.chance(0.04) else plain_turn(w) for _ in range(w.rng.choice([1, 2, 2, 3, 3, 4]))]
        if told.name and w.chance(0.5) or w.chance(0.04):
            turns.insert(w.rng.randint(0, len(turns)), identity(w))
    return assemble(w, turns, told, offered, think)


def _choose(w: World, offered: list[Offer], wanted: int) -> list[Offer]:
    if wanted == 2:
        return offered[:2] if w.chance(0.5) else [offered[0]] * 2
    return offered[:1]


def drill(w: World) -> Conversation:
    """Copying in its barest form, for the first minutes of training: random strings in, the same strings out."""
    turns = [w.rng.choice([repeat, repeat, spell, upper])(w) for _ in range(w.rng.randint(2, 4))]
    if w.chance(0.5):
        offered = [offer(w, catalogue.made_up(w))]
        return assemble(w, [tool_turn(w, offered)], Style(), offered, False)
    return assemble(w, turns, Style(), [], False)


def side_turn(w: World, offered: list[Offer]) -> Turn:
    """An exchange that needs none of the tools on offer."""
    if w.chance(0.15):
        return missing_tool(w, offered)
    sums = {"add", "multiply"} & {o.tool.name for o in offered}
    while True:
        turn = w.rng.choice([plain_turn, chat])(w)
        if not (sums and turn.skill == "arithmetic"):
            return turn


def main() -> None:
    w = World(random.Random(1))
    for _ in range(12):
        c = conversation(w)
        print(render(c.messages, c.tools, c.think))
        print("-" * 80)


if __name__ == "__main__":
    main()
