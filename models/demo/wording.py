"""How a request is worded: one of its phrasings, dressed up with what people put around it and, in training, blurred."""

from __future__ import annotations

import phrases
from world import World


def say(world: World, key: str, /, **values: object) -> str:
    """A phrasing of `key` with its values, dressed up with the small words that people put around a request."""
    return dress(world, world.of(phrases.PHRASES[key]), **values)


def dress(w: World, phrase: str, /, **values: object) -> str:
    order = phrase.startswith("!")
    text = phrase.lstrip("!")
    if not w.held and w.chance(0.2):
        text = blur(w, text)
    before = after = ""
    if w.chance(0.3):
        before = w.of(phrases.BEFORE_ORDER if order and w.chance(0.7) else phrases.BEFORE_ANY)
        if not w.held and w.chance(0.25):
            before = murmur_before(w)
        if not text.startswith(("{", "I ", "I'")):
            text = text[0].lower() + text[1:]
    elif w.chance(0.2) and not text.startswith("I"):
        text = text[0].lower() + text[1:]
    bare = text.rstrip("?.!")
    if w.chance(0.12) and not bare.endswith(("}", '"')):
        text, after = bare, w.of(phrases.AFTER)
        if not w.held and w.chance(0.25):
            after = murmur_after(w)
    elif w.chance(0.15):
        text = bare
    elif order and text == bare and not text.endswith(("}", '"')) or order and w.chance(0.3) and not text.endswith('"') and "{s}" not in text:
        text += "?" if before.startswith(("Can", "Could", "Would", "Might")) else "."
    return before + text.format(**values) + after


def blur(w: World, phrase: str) -> str:
    """The phrase with a word or two lost, added or replaced by one that says nothing.

    A model this small learns phrases by heart. Blurred ones make it look at what matters (the key words, the values)
    and prepare it for the wordings that nobody wrote down. Training only.
    """
    strength = w.rng.choice([0.06, 0.1, 0.2])
    out = []
    for word in phrase.split(" "):
        roll = w.rng.random() / strength
        if any(mark in word for mark in "{}\"':") or roll > 1:
            out.append(word)
        elif roll > 0.65:
            continue
        elif roll > 0.3:
            out.append(_any_word(w))
        else:
            out += [word, _any_word(w)]
    return " ".join(out) or phrase


def murmur_before(w: World) -> str:
    """A few common words without a meaning, to stand before a request. Training only."""
    text = _murmur(w)
    return (text.capitalize() if w.chance(0.5) else text) + w.rng.choice([", ", ": ", " and ", ". ", " "])


def murmur_after(w: World) -> str:
    return w.rng.choice([" for ", ", ", " "]) + _murmur(w)


def _murmur(w: World) -> str:
    return " ".join(_any_word(w) for _ in range(w.rng.randint(1, 4)))


def _any_word(w: World) -> str:
    return w.invented() if w.chance(0.15) else w.plain_word()
