"""Random values of the demo model's world: names, cities, numbers, invented words, each from its side of the split.

A `World` is either a training world or a held-out one. Listed values come from `words.Split`. Invented strings and
numbers are divided by a rule instead: a checksum of the string, the number modulo 7, a checksum of a pair of
operands. So training can meet any *shape* of value but never a value that the evaluation may ask for.
"""

from __future__ import annotations

import random
import zlib
from string import ascii_uppercase

import words
from words import Split

_ONSETS = "b c d f g h j k l m n p r s t v w z br cl dr fl gr kr pl pr sh sk sl sp st tr th ch qu".split()
_VOWELS = "a e i o u a e i o u ai ea ee ou oo y".split()
_CODAS = ["", "", "", *"n r l s t m d k x p g b rn st nd ck ng lt sh".split()]

EXTENSIONS = Split("txt pdf csv md json log png doc".split(), "xml yaml html zip".split())
CURRENCIES = Split("USD EUR GBP JPY CHF CAD AUD CNY INR BRL".split(), "SEK NOK PLN KRW".split())
LANGUAGES = Split("German French Spanish Italian Japanese Polish Dutch Greek Turkish Russian".split(), "Swedish Danish Korean Finnish".split())
CUISINES = Split("Italian French Indian Chinese Mexican Thai Greek Turkish Japanese Spanish".split(), "Korean Polish Moroccan Peruvian".split())
ROOMS = Split(["kitchen", "bedroom", "bathroom", "hall", "living room", "garage", "office", "cellar"], ["attic", "nursery", "dining room", "library"])
CHORES = Split(
    ["buy milk", "call the bank", "water the plants", "pay the rent", "clean the car", "visit the doctor", "wash the dog", "buy bread", "send the letter"],
    ["feed the hens", "renew the passport", "mow the lawn", "fetch the parcel"],
)
UNITS = ["celsius", "fahrenheit"]
COLOURS = "red blue green yellow orange purple brown black white grey pink".split()


_HELD_WORDS = {word.lower() for word in [*words.NOUNS.held, *words.NAMES.held, *words.CITIES.held]}


def is_held_text(text: str) -> bool:
    """A tenth of all strings belongs to the evaluation, and every word of its lists."""
    return text.lower() in _HELD_WORDS or zlib.crc32(text.lower().encode()) % 10 == 0


def is_held_number(number: int) -> bool:
    return number % 7 == 3


def is_held_pair(a: int, b: int) -> bool:
    """One pair of operands in thirty, spread so that each pair of last digits is also seen in training."""
    return (31 * a + 17 * b) % 10 == 0 and zlib.crc32(f"{a} {b}".encode()) % 3 == 0


def _plural(noun: str) -> str:
    if noun.endswith(("s", "x", "ch", "sh")):
        return noun + "es"
    return noun[:-1] + "ies" if noun.endswith("y") and noun[-2] not in "aeiou" else noun + "s"


def _gerund(verb: str) -> str:
    return (verb[:-1] if verb.endswith("e") and not verb.endswith("ee") else verb) + "ing"


class World:
    """A seeded source of values; `held` says from which side of the split."""

    def __init__(self, rng: random.Random, held: bool = False, pieces: list[str] | None = None):
        self.rng = rng
        self.held = held
        self.pieces = pieces or []

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def of(self, split: Split) -> str:
        return self.rng.choice(split.held if self.held else split.train)

    def _mine(self, make, is_held):
        """Draw until the value is on this world's side; the sides are large, so this ends quickly."""
        while True:
            value = make()
            if is_held(value) == self.held:
                return value

    def number(self, low: int, high: int) -> int:
        return self._mine(lambda: self.rng.randint(low, high), is_held_number)

    def pair(self, low: int, high: int) -> tuple[int, int]:
        return self._mine(lambda: (self.rng.randint(low, high), self.rng.randint(low, high)), lambda p: is_held_pair(*p))

    def invented(self) -> str:
        """A word that nobody has seen: syllables, or (in training) tokens glued together so that every token gets used."""
        return self._mine(self._invent, is_held_text)

    def _invent(self) -> str:
        choice = self.rng.choice
        if self.pieces and self.chance(0.4):
            return "".join(choice(self.pieces) for _ in range(self.rng.randint(1, 2)))[:8]
        return "".join(choice(_ONSETS) + choice(_VOWELS) + choice(_CODAS) for _ in range(self.rng.choice([1, 1, 2, 2, 2])))

    def word(self) -> str:
        if self.chance(0.5):
            return self.invented()
        return self.of(words.NOUNS) if self.held or self.chance(0.35) else self.plain_noun()

    def plain_noun(self) -> str:
        """One of very many nouns. Training only."""
        return self._mine(lambda: self.rng.choice(words.MANY_NOUNS), is_held_text)

    def _plain_verb(self) -> str:
        """One of very many verbs; some ("saddle") are also nouns that the evaluation asks for. Training only."""
        return self._mine(lambda: self.rng.choice(words.MANY_VERBS), is_held_text)

    def plain_word(self) -> str:
        """One of the commonest words, or of very many others. Training only."""
        roll = self.rng.random()
        return self.rng.choice(words.COMMON) if roll < 0.6 else self.plain_noun() if roll < 0.85 else self._plain_verb()

    def lettered(self) -> str:
        """A word to be spelled; in training mostly one that shows the letters of seldom tokens, or an everyday one."""
        if self.held or not self.pieces or self.chance(0.3):
            return self.word()
        if self.chance(0.3):
            return self.plain_word().lower()
        glue = lambda: "".join(self.rng.choice(self.pieces) for _ in range(self.rng.randint(1, 3)))[:9]  # noqa: E731
        return self._mine(glue, is_held_text)

    def name(self) -> str:
        return self.invented().capitalize() if self.chance(0.4) else self.of(words.NAMES)

    def city(self) -> str:
        if self.chance(0.35):
            first = self.invented().capitalize()
            return f"{first} {self.invented().capitalize()}" if self.chance(0.25 if self.held else 0.5) else first
        return self.of(words.CITIES)

    def topic(self) -> str:
        if self.chance(0.5 if self.held else 0.2):
            return self.of(words.TOPICS)
        if not self.held and self.chance(0.6):
            return self._mine(self._subject, words.TOPICS.held.__contains__)
        return " ".join(self.word() for _ in range(self.rng.randint(1, 3)))

    def _subject(self) -> str:
        """Plain words put together as the listed topics are, so that these are not learnt by heart. Training only."""
        noun, things, of = self.plain_noun(), _plural(self.plain_noun()), self.rng.choice(["for", "of", "in", "about"])
        doing = _gerund(self._plain_verb())
        return self.rng.choice([things, f"{noun} {things}", f"{noun} {things}", f"{doing} {things}", f"{doing} a {noun}", f"{self.plain_word()} {things}", f"{things} {of} {noun}", f"{noun} {doing}"])

    def sentence(self) -> str:
        if self.chance(0.5):
            return self.of(words.SENTENCES) if self.held or self.chance(0.3) else self._word_soup()
        return " ".join(self.word() for _ in range(self.rng.randint(2, 5)))

    def _word_soup(self) -> str:
        """Common words in any order, among them now and then one of the world's own. Training only."""
        return " ".join(self.word() if self.chance(0.25) else self.plain_word() for _ in range(self.rng.randint(2, 8)))

    def listed(self, split: Split) -> str:
        """An entry of a short list; in training also a word that is not on it, since the evaluation brings others."""
        return self.of(split) if self.held or self.chance(0.6) else self.invented()

    def code(self) -> str:
        letters = "ABCDEFGHJKLMNPRSTUVWXYZ"
        shape = self.rng.choice(["A99", "AA999", "9999", "AA-999", "A9A9", "99999", "AAA-9", "AAAA99"])
        fill = lambda: "".join(self.rng.choice(letters) if c == "A" else str(self.rng.randint(0, 9)) if c == "9" else c for c in shape)  # noqa: E731
        return self._mine(fill, is_held_text)

    def value(self, kind: str):
        """A value for a tool parameter of this kind (see tools.py)."""
        rng = self.rng
        match kind:
            case "int":
                return self.number(0, rng.choice([20, 99, 999, 9999]))
            case "small":
                return self.number(1, 30)
            case "age":
                return self.number(5, 90)
            case "ticker":
                return self._mine(lambda: "".join(rng.choice("ABCDEFGHIKLMNOPRSTUVWXZ") for _ in range(rng.randint(3, 4))), is_held_text)
            case "clock":
                return f"{rng.randint(0, 23)}:{rng.randint(0, 59):02d}" if self.chance(0.7) else f"{rng.randint(1, 12)} {rng.choice(['am', 'pm'])}"
            case "email":
                return f"{self.name().lower()}@{self.word()}.com"
            case "path":
                return f"{self.word()}.{self.listed(EXTENSIONS)[:4]}"
            case "day":
                return rng.choice(words.DAYS)
            case "month":
                return rng.choice(words.MONTHS)
            case "colour":
                return rng.choice(COLOURS)
            case "unit":
                return rng.choice(UNITS)
            case "timezone":
                return self.of(words.TIMEZONES) if self.chance(0.7) else f"{self.invented().capitalize()}/{self.invented().capitalize()}"
            case "currency":
                if self.held or self.chance(0.5):
                    return self.of(CURRENCIES)
                return next(c for c in iter(lambda: "".join(rng.choices(ascii_uppercase, k=3)), None) if c not in CURRENCIES.held)
            case "language":
                return self.of(LANGUAGES) if self.held or self.chance(0.6) else self.invented().capitalize()
            case "cuisine":
                return self.of(CUISINES) if self.held or self.chance(0.6) else self.invented().capitalize()
            case "room":
                return self.listed(ROOMS) if self.held or self.chance(0.8) else f"{self.word()} room"
            case "chore":
                return self.of(CHORES) if self.held or self.chance(0.5) else f"{rng.choice(words.COMMON)} the {self.word()}"
            case "person":
                return self.name()
            case "city" | "word" | "topic" | "sentence" | "code":
                return getattr(self, kind)()
        raise ValueError(kind)
