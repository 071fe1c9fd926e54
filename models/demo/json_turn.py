"""Facts in a sentence or as pairs, wanted back as a JSON object."""

from __future__ import annotations

import json

import words
from tools import param_name
from turn import Turn
from wording import say
from world import COLOURS, World


def json_object(w: World) -> Turn:
    """Facts in a sentence or as pairs, wanted back as a JSON object with given keys."""
    if w.chance(0.55):
        facts, sentence = _person_facts(w)
    else:
        facts, sentence = _loose_facts(w)
    keys = list(facts)
    if len(keys) > 1 and w.chance(0.3):
        w.rng.shuffle(keys)
    shown = keys[0] if len(keys) == 1 else ", ".join(keys[:-1]) + w.rng.choice([" and ", ", "]) + keys[-1]
    wish = say(w, "json", keys=shown) if w.chance(0.75) else say(w, "json_free")
    user = w.rng.choice([f"{sentence} {wish}", f"{wish} {sentence}", f"{wish}\n{sentence}"])
    value = {key: facts[key] for key in keys}
    return Turn("json", user, json.dumps(value, ensure_ascii=False), "The user wants JSON.", {"json": value}, styled=False)


def _person_facts(w: World) -> tuple[dict, str]:
    name, age, city, shade, likes = w.name(), w.value("age"), w.city(), w.rng.choice(COLOURS), w.word()
    name_key = w.rng.choice(["name", "name", "name", "person", "user", "full_name"])
    city_key = w.rng.choice(["city", "city", "city", "town", "home", "location"])
    facts, text = w.rng.choice(
        [
            ({name_key: name, "age": age}, f"{name} is {age} years old."),
            ({name_key: name, "age": age, city_key: city}, f"{name} is {age} years old and lives in {city}."),
            ({name_key: name, "age": age, city_key: city}, f"{name}, {age}, lives in {city}."),
            ({name_key: name, city_key: city}, f"{name} lives in {city}."),
            ({name_key: name, city_key: city}, f"{name} comes from {city}."),
            ({name_key: name, "age": age, "colour": shade}, f"{name} is {age} and likes the colour {shade}."),
            ({name_key: name, "colour": shade}, f"The favourite colour of {name} is {shade}."),
            ({name_key: name, "age": age, city_key: city, "colour": shade}, f"{name} is {age}, lives in {city} and likes {shade}."),
            ({city_key: city, "temperature": age, "condition": w.of(words.CONDITIONS)}, None),
            ({"product": likes, "price": age}, f"The {likes} costs {age} euros."),
            ({"product": likes, "price": age, "colour": shade}, f"A {shade} {likes} costs {age} euros."),
            ({name_key: name, "likes": [likes, shade]}, f"{name} likes {likes} and {shade}."),
            ({name_key: name, "day": (day := w.value('day'))}, f"{name} comes on {day}."),
            ({name_key: name, "member": (yes := w.chance(0.5))}, f"{name} is {'a' if yes else 'not a'} member."),
        ]
    )
    if text is None:
        text = f"In {city} it is {age} degrees and {facts['condition']}."
    return facts, text


def _loose_facts(w: World) -> tuple[dict, str]:
    facts: dict = {}
    for _ in range(w.rng.randint(1, 4)):
        if w.chance(0.4):
            facts[param_name(w, "integer")] = w.value("int")
        else:
            value = w.rng.choice([w.word, w.name, w.city, w.code])()
            facts[param_name(w, "string")] = w.value("int") if value.isdigit() and not w.held else value  # quotes cannot be guessed
    style = w.rng.choice(["{k}: {v}", "{k} is {v}", "{k} = {v}", "{k} {v}", "the {k} is {v}"])
    text = ", ".join(style.format(k=k, v=v) for k, v in facts.items())
    return facts, text[0].upper() + text[1:] + "." if w.chance(0.5) else text + "."
