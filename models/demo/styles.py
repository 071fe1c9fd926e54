"""What a system prompt asks of every answer: a name, a tone, a first or a last word."""

from __future__ import annotations

from dataclasses import dataclass

import phrases
from world import World


@dataclass
class Style:
    """What the system prompt asks of every plain answer."""

    system: str = ""
    start: str = ""
    end: str = ""
    name: str = ""
    user_name: str = ""

    def apply(self, answer: str) -> str:
        return f"{self.start} {answer}".strip() + (f" {self.end}" if self.end else "")


def style(w: World) -> Style:
    roll = w.rng.random()
    if roll < 0.45:
        return Style()
    if roll < 0.62:
        return Style(w.of(phrases.PLAIN_SYSTEMS))
    parts, made = [], Style()
    if w.chance(0.5):
        made.name = w.name()
        parts.append(w.of(phrases.NAMED_SYSTEMS).format(v=made.name))
    elif w.chance(0.3):
        made.user_name = w.name()
        parts.append(w.of(phrases.USER_NAME_SYSTEMS).format(v=made.user_name))
    if not parts or w.chance(0.4):
        way = w.rng.choice(["tone", "start", "end"])
        if way == "tone":
            made.start, tones = w.rng.choice(list(phrases.TONES.items()))
            parts.append(w.of(tones))
        elif way == "start":
            made.start = w.word().capitalize() + w.rng.choice(["!", ".", ","])
            parts.append(w.of(phrases.START_SYSTEMS).format(v=made.start.rstrip(".")))
        else:
            made.end = w.word().capitalize() + "!"
            parts.append(w.of(phrases.END_SYSTEMS).format(v=made.end))
    w.rng.shuffle(parts)
    made.system = " ".join(parts)
    return made
