"""How people say things in the demo model's world, read from the files in text/.

A file is cut into sections: `# key`, the phrasings that training uses, a line `=====`, and those that only the
evaluation uses. A phrase holds its values as `{name}`. A leading `!` marks an order ("Count to {n}"), which may be
wrapped as "Can you ...?" or "Please ...". In around.txt a `~` stands for a blank at a line's start.
"""

from __future__ import annotations

import re
from pathlib import Path

from words import Split

TEXT = Path(__file__).parent / "text"


def read_sections(name: str) -> dict[str, Split]:
    """The sections of text/`name` in their order; a phrasing on both sides is an error, for it would spoil the scores."""
    sections: dict[str, Split] = {}
    side: list[str] = []
    for line in (TEXT / name).read_text().splitlines():
        line = line.strip()
        if line.startswith("# "):
            sections[line[2:]] = split = Split([], [])
            side = split.train
        elif line == "=====":
            side = split.held
        elif line:
            side.append(line)
    for key, split in sections.items():
        shared = {bare(p) for p in split.train} & {bare(p) for p in split.held}
        assert not shared, f"{name}, {key}: {shared} is in training and in the evaluation"
    return sections


def bare(phrase: str) -> str:
    """The phrase without what does not make it another one: case, marks, a please."""
    return " ".join(re.sub(r"[^a-z0-9{} ]", "", phrase.lower()).replace("please", "").split())


def _mapped(split: Split, change) -> Split:
    return Split([change(p) for p in split.train], [change(p) for p in split.held])


PHRASES = read_sections("requests.txt")
CHAT = read_sections("chat.txt")  # by what the model answers
TWICE = read_sections("twice.txt")  # one phrase for two calls of the same tool, by the tool's name

_AROUND = read_sections("around.txt")
BEFORE_ANY = _mapped(_AROUND["before any"], lambda p: p + " ")
BEFORE_ORDER = _mapped(_AROUND["before an order"], lambda p: p + " ")
AFTER = _mapped(_AROUND["after"], lambda p: p.replace("~", " ", 1))

_SYSTEMS = read_sections("systems.txt")
PLAIN_SYSTEMS = _SYSTEMS["plain"]
NAMED_SYSTEMS = _SYSTEMS["named"]
USER_NAME_SYSTEMS = _SYSTEMS["user named"]
START_SYSTEMS = _SYSTEMS["start"]
END_SYSTEMS = _SYSTEMS["end"]
# What the answer begins with -> how the system prompt asks for this tone.
TONES = {key.removeprefix("tone "): split for key, split in _SYSTEMS.items() if key.startswith("tone ")}
