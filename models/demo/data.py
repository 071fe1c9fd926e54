"""The demo model's training text: seeded, synthetic conversations about a small world, rendered by the shipped chat template.

A *skill* makes one exchange (`Turn`): what the user says, what the model should answer, what it might think first and
how the evaluation checks an answer. `conversation()` puts one to four turns together with a system prompt and tools.
The same code makes the evaluation, in a held-out world (see world.py, words.py, phrases.py, tools.py for the split).

    python data.py            prints a few samples
"""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass, field
from pathlib import Path

import jinja2

import phrases
import tools as catalogue
import words
from tools import VERBS, Tool, param_name
from world import COLOURS, World, is_held_pair

HERE = Path(__file__).parent
REFUSAL = "Sorry, I cannot do that. I am only a small demo model."
SELF = "I am the Truewire demo, a very small language model."


# ---------------------------------------------------------------------------------------------------------------- turns


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


def say(world: World, key: str, /, **values: object) -> str:
    """A phrasing of `key` with its values, dressed up with the small words that people put around a request."""
    return dress(world, world.of(phrases.PHRASES[key]), **values)


def dress(w: World, phrase: str, /, **values: object) -> str:
    order = phrase.startswith("!")
    text = phrase.lstrip("!")
    if not w.held and w.chance(0.3):
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
    strength = w.rng.choice([0.08, 0.15, 0.3])
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


# ---------------------------------------------------------------------------------------------------------- plain skills


def count(w: World) -> Turn:
    way = w.rng.choice(["count", "count_to", "count_down"])
    if way == "count":
        a, length = w.pair(0, 12)
        a, b = a * w.rng.choice([1, 1, 3, 7]), 0
        b = a + length + 2
        numbers, user = list(range(a, b + 1)), say(w, "count", a=a, b=b)
    else:
        b = w.number(2, 24)
        numbers = list(range(1, b + 1)) if way == "count_to" else list(range(b, 0, -1))
        user = say(w, way, b=b)
    answer = ", ".join(map(str, numbers))
    think = f"The user wants me to count from {numbers[0]} to {numbers[-1]}."
    return Turn("count", user, answer, think, {"contains": [answer]})


def spell(w: World) -> Turn:
    word = w.lettered()[:8]
    letters = "-".join(word)
    if w.chance(0.2):
        answer = f"{letters}: {len(word)} letters."
        return Turn("spell", say(w, "letters", w=word), answer, f"I spell {word} and count the letters.", contains(len(word)))
    return Turn("spell", say(w, "spell", w=word), letters, f"The user wants me to spell {word}.", exact(letters))


def reverse(w: World) -> Turn:
    word = w.lettered()[:8]
    answer = f"{'-'.join(word)} backwards is {'-'.join(reversed(word))}"
    return Turn("reverse", say(w, "reverse", w=word), answer, f"I spell {word} and then go backwards.", contains("is " + "-".join(reversed(word))))


def repeat(w: World) -> Turn:
    if w.chance(0.25):
        word, n = w.word(), w.rng.randint(2, 6)
        answer = " ".join([word] * n)
        times = words.NUMBER_WORDS[n] if w.chance(0.4) else n
        return Turn("repeat", say(w, "repeat_times", w=word, n=times), answer, f"The user wants {word} {n} times.", exact(answer))
    text = w.rng.choice([w.word, w.name, w.sentence, w.sentence, w.code, w.city])()
    return Turn("repeat", say(w, "repeat", s=text), text, "The user wants me to repeat the text.", exact(text))


def upper(w: World) -> Turn:
    text = w.lettered() if w.chance(0.6) else " ".join(w.sentence().split()[:4])
    return Turn("upper", say(w, "upper", s=text), text.upper(), "The user wants capital letters.", exact(text.upper()))


def arithmetic(w: World) -> Turn:
    way = w.rng.choice(["add", "add", "subtract", "subtract", "times"])
    if way == "times":
        a, b = w.rng.randint(0, 10), w.rng.randint(0, 10)  # a closed table, to be learnt by heart like the capitals
        result, sign = a * b, "*"
    else:
        a, b = w.pair(0, w.rng.choice([12, 20, 20, 50]))
        if way == "subtract" and a < b:
            a, b = b, a
        if way == "subtract" and is_held_pair(a, b) != w.held:
            return arithmetic(w)  # the swap must not carry a held-out pair into training
        result, sign = (a + b, "+") if way == "add" else (a - b, "-")
    answer = f"{a} {sign} {b} = {result}"
    return Turn("arithmetic", say(w, way, a=a, b=b), answer, f"I compute {answer}.", contains(f"= {result}"))


def calendar(w: World) -> Turn:
    way = w.rng.choice(["day_after", "day_before", "month_after", "month_before", "month_number"])
    if way == "month_number":
        n = w.rng.randint(1, 12)
        nth = f"{n}{'st' if n == 1 else 'nd' if n == 2 else 'rd' if n == 3 else 'th'}"
        return Turn("calendar", say(w, way, n=n, nth=nth), f"Month {n} is {words.MONTHS[n - 1]}.", f"I count the months to {n}.", contains(words.MONTHS[n - 1]))
    names, key, kind = (words.DAYS, "d", "day") if way.startswith("day") else (words.MONTHS, "m", "month")
    i = w.rng.randrange(len(names))
    after = way.endswith("after")
    other = names[(i + (1 if after else -1)) % len(names)]
    user = say(w, way, **{key: names[i]})
    return Turn("calendar", user, f"{other} comes {'after' if after else 'before'} {names[i]}.", f"The user asks for a {kind}.", contains(other + " "))


def capital(w: World) -> Turn:
    if w.chance(0.12):
        place = w.invented().capitalize()
        return Turn("capital", say(w, "capital", c=place), f"I do not know the capital of {place}.", f"I have never heard of {place}.", contains("not know", place))
    country, city = w.rng.choice(list(words.CAPITALS.items()))
    think = f"The user asks about {country}."
    if w.chance(0.2):
        return Turn("capital", say(w, "country", k=city), f"{city} is the capital of {country}.", f"The user asks about {city}.", contains(country))
    return Turn("capital", say(w, "capital", c=country), f"The capital of {country} is {city}.", think, contains(city))


def colour(w: World) -> Turn:
    if w.chance(0.6):
        thing, shade = w.rng.choice(list(words.THING_COLOURS.items()))
        user = say(w, "colour_of", t=thing)
        user = user[0].upper() + user[1:] if user.startswith(thing) else user
        return Turn("colour", user, f"{thing[0].upper()}{thing[1:]} is {shade}.", f"The user asks about {thing}.", contains(f"is {shade}"))
    (x, y), mixed = w.rng.choice(list(words.COLOUR_MIXES.items()))
    if w.chance(0.5):
        x, y = y, x
    return Turn("colour", say(w, "colour_mix", x=x, y=y), f"{x.capitalize()} and {y} make {mixed}.", f"I mix {x} and {y}.", contains(f"make {mixed}"))


def lists(w: World) -> Turn:
    way = w.rng.choice(["list", "pick", "number_list"])
    if way == "list":
        kind, entries = w.rng.choice(list(words.CATEGORIES.items()))
        n = w.rng.randint(2, 7)
        shown = words.NUMBER_WORDS[n] if w.chance(0.5) else n
        answer = "\n".join(f"- {entry}" for entry in entries[:n])
        return Turn("list", say(w, "list", n=shown, k=kind), answer, f"The user wants {n} {kind}.", exact(answer))
    entries = []
    while len(entries) < (n := w.rng.randint(2, 5)):
        entry = w.rng.choice([w.word, w.word, w.name])()
        if entry not in entries:
            entries.append(entry)
    shown = ", ".join(entries)
    if way == "pick":
        i = w.rng.randrange(n)
        answer = f"The {words.ORDINALS[i]} one is {entries[i]}."
        return Turn("list", say(w, "pick", l=shown, o=words.ORDINALS[i]), answer, f"I take the {words.ORDINALS[i]} one.", exact(answer))
    answer = "\n".join(f"{i + 1}. {entry}" for i, entry in enumerate(entries))
    return Turn("list", say(w, "number_list", l=shown), answer, "The user wants a numbered list.", exact(answer))


def story(w: World) -> Turn:
    word = w.word()
    answer = f"Once upon a time, a small {word} went out to see the world. It walked all day, met a friendly star and came home happy. The end."
    return Turn("chat", say(w, "story", w=word), answer, f"The user wants a story about a {word}.", contains(f"small {word} ", "The end."))


def chat(w: World) -> Turn:
    answer = w.rng.choices(list(phrases.CHAT), [6, 2, 2, 2, 6, 4, 4, 3, 3, 4, 2, 2, 2, 14])[0]
    text = w.of(phrases.CHAT[answer])
    user = dress(w, text, topic=w.topic(), person=w.name(), word=w.word())
    if answer == "{refusal}":
        return Turn("refusal", user, REFUSAL, "I cannot do that.", contains(REFUSAL))
    if answer == "{self}":
        return _identity(user)
    return Turn("chat", user, answer, "The user talks to me.", contains(answer))


def identity(w: World) -> Turn:
    """Who are you? Its own name, or (see `assemble`) the one that the system prompt gave."""
    return _identity(dress(w, w.of(phrases.CHAT["{self}"])))


def _identity(user: str) -> Turn:
    return Turn("identity", user, SELF, "The user asks who I am.", contains(SELF))


# ------------------------------------------------------------------------------------------------------------------ json


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
            facts[param_name(w, "string")] = w.rng.choice([w.word, w.name, w.city, w.code])()
    style = w.rng.choice(["{k}: {v}", "{k} is {v}", "{k} = {v}", "{k} {v}", "the {k} is {v}"])
    text = ", ".join(style.format(k=k, v=v) for k, v in facts.items())
    return facts, text[0].upper() + text[1:] + "." if w.chance(0.5) else text + "."


# ----------------------------------------------------------------------------------------------------------------- tools


@dataclass
class Offer:
    """A tool as one request offers it: maybe renamed, with or without descriptions, in the client's key order."""

    tool: Tool
    name: str
    params: dict[str, str]  # our parameter name -> the offered one
    spec: dict

    def call(self, values: dict) -> dict:
        return {"name": self.name, "arguments": {self.params[key]: value for key, value in values.items()}}


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def renamed(w: World, tool: Tool) -> str:
    way = w.rng.randrange(5)
    if way == 0:
        return camel(tool.name)
    if way == 1:
        return w.rng.choice([f"{tool.name}_v2", f"my_{tool.name}", f"{w.invented()}_{tool.name}", f"{tool.name}_{w.invented()}", f"do_{tool.name}"])
    if way == 2:
        return w.invented()
    name = f"{w.rng.choice(VERBS)}_{w.rng.choice([w.invented(), *tool.name.split('_')[1:], 'data'])}"
    return camel(name) if w.chance(0.3) else name


def offer(w: World, tool: Tool, change: bool = True) -> Offer:
    """How a client might declare this tool. Renaming is what teaches the model to read names instead of reciting them."""
    change = change and w.chance(0.65)
    rename = change and w.chance(0.6)
    name = renamed(w, tool) if rename else tool.name
    names: dict[str, str] = {}
    for param in tool.params:
        new = param.name
        if change and w.chance(0.45):
            new = w.rng.choice([lambda: param_name(w, param.type), lambda: camel(f"{param.name}_{w.rng.choice(['name', 'value', 'arg'])}"), lambda: f"{param.name}_{w.invented()}"])()
        names[param.name] = new if new not in names.values() else param.name
    same_type = len({p.type == "string" for p in tool.params}) < len(tool.params)
    properties = {}
    for param in tool.params:
        schema: dict = {"type": param.type}
        if param.kind == "unit":
            schema["enum"] = ["celsius", "fahrenheit"]
        told = names[param.name] != param.name and same_type
        if told or w.chance(0.3):
            label = param.name.replace("_", " ")
            schema["description"] = w.rng.choice(["The {}", "{}", "the {}", "The {} to use"]).format(label)
        if "enum" in schema and "description" in schema and w.chance(0.5):
            schema["enum"] = schema.pop("enum")
        properties[names[param.name]] = schema
    required = [names[p.name] for p in tool.params if not p.optional]
    function: dict = {"name": name}
    if rename or w.chance(0.85):
        text = tool.description
        function["description"] = w.rng.choice([text, text, text + ".", text[0].lower() + text[1:], f"Use this to {text[0].lower()}{text[1:]}"])
    function["parameters"] = {"type": "object", "properties": properties, "required": required}
    return Offer(tool, name, names, {"type": "function", "function": function})


def ask(w: World, tool: Tool) -> tuple[str, dict]:
    """A question for this tool, and the argument values it names."""
    values = {p.name: w.value(p.kind) for p in tool.params}
    template = w.rng.choice(tool.held_asks if w.held else tool.asks)
    if not w.held and w.chance(0.3):
        template = blur(w, template)
    used = {p.name: values[p.name] for p in tool.params if "{" + p.name + "}" in template}
    text = template.format(**values)
    if w.chance(0.2):
        before = w.of(phrases.BEFORE_ANY)
        if not w.held and w.chance(0.3):
            before = w.rng.choice([w.of(phrases.BEFORE_ORDER), murmur_before(w)])
        text = before + (text if template.startswith(("{", "I ")) else text[0].lower() + text[1:])
    elif w.chance(0.15) and not template.startswith(("{", "I ")):
        text = text[0].lower() + text[1:]
    if w.chance(0.15) and not template.rstrip("?.").endswith("}"):
        text = text.rstrip("?.") + w.of(phrases.AFTER)
        if not w.held and w.chance(0.25):
            text += murmur_after(w)
    elif w.chance(0.2):
        text = text.rstrip("?.")
    elif not text.endswith(("?", ".", "}")) and w.chance(0.3):
        text += "."
    return text, used


def result(w: World, tool: Tool, values: dict) -> tuple[str, str]:
    """What the tool answered, and the sentence that passes it on."""
    rng = w.rng
    if w.chance(0.07):
        text = rng.choice(["not found", "time out", "no access", f"{w.word()} is missing", "bad request", "service is down"])
        return rng.choice([json.dumps({"error": text}), f"error: {text}"]), f"Sorry, that did not work: {text}."
    if tool.name == "get_weather":
        degrees, sky = rng.randint(-9, 38), w.of(words.CONDITIONS)
        sentence = f"It is {degrees} degrees and {sky} in {values['city']}."
        keys = [rng.choice(["temperature", "temp", "degrees", "temp_c"]), rng.choice(["condition", "conditions", "weather", "sky"])]
        pairs = list(zip(keys, [degrees, sky]))
        if w.chance(0.2):
            rng.shuffle(pairs)
        if w.chance(0.25):
            pairs.insert(rng.randrange(3), ("city", values["city"]))
        text = rng.choice([f"{degrees} degrees, {sky}", f"{sky}, {degrees} C", f"{degrees} C and {sky}", f"{sky} and {degrees} degrees"])
        return (json.dumps(dict(pairs)) if w.chance(0.7) else text), sentence
    if tool.name == "get_time":
        clock = f"{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}"
        return rng.choice([clock, json.dumps({"time": clock})]), f"It is {clock} in {values['timezone']}."
    if tool.name in ("add", "multiply"):
        a, b = values["a"], values["b"]
        total = a + b if tool.name == "add" else a * b
        sentence = f"{a} {'plus' if tool.name == 'add' else 'times'} {b} is {total}."
        return rng.choice([str(total), json.dumps({"result": total}), json.dumps({rng.choice(["sum", "value", "total"]): total})]), sentence
    if tool.name == "search":
        found = w.topic() if w.chance(0.5) else w.sentence()
        return rng.choice([found, json.dumps({"results": [found]}), json.dumps({"result": found})]), f"I found: {found}."
    if w.chance(0.2):
        return rng.choice(["ok", "done", '{"status": "ok"}', '{"ok": true}', '{"success": true}', "success"]), "Done."
    if w.chance(0.35):
        text = rng.choice([w.sentence, w.word, w.code, lambda: str(rng.randint(0, 9999))])()
        return rng.choice([text, json.dumps({"result": text})]), f"The result is {text}."
    fields = {}
    for _ in range(rng.randint(1, 3)):
        fields[param_name(w, rng.choice(["string", "integer"]))] = rng.choice([w.word, w.name, w.code, lambda: rng.randint(0, 999), lambda: rng.randint(0, 99)])()
    return json.dumps(fields), "The result: " + ", ".join(f"{k} is {v}" for k, v in fields.items()) + "."


def any_tool(w: World, strange: bool) -> Tool:
    """A tool to offer. Among strange ones nothing can be known by heart: the declarations have to be read."""
    roll = w.rng.random()
    if strange:
        return w.rng.choice(catalogue.OTHER) if roll < 0.45 else catalogue.made_up(w)
    if roll < 0.3:
        return w.rng.choice(catalogue.FAMILIAR[:4])
    if roll < 0.75:
        return w.rng.choice(catalogue.FAMILIAR)
    return w.rng.choice(catalogue.OTHER) if roll < 0.9 else catalogue.made_up(w)


def offers(w: World, wanted: int) -> list[Offer]:
    """The tools of one request, with different names; the first `wanted` are those that will be asked for."""
    found: list[Offer] = []
    extra, strange = w.rng.choice([0, 1, 1, 2, 2, 3, 3]), w.chance(0.55)
    while len(found) < wanted + extra:
        tool = any_tool(w, strange)
        if tool.name not in [o.tool.name for o in found]:
            new = offer(w, tool)
            if new.name not in [o.name for o in found]:
                found.append(new)
    return found


def tool_turn(w: World, chosen: list[Offer]) -> Turn:
    """One or two calls, then the answer that uses the results."""
    asked = [ask(w, o.tool) for o in chosen]
    if len(chosen) == 2 and chosen[0] is chosen[1]:
        joined = _any_tool_twice(w, chosen[0].tool) or _same_tool_twice(w, chosen[0].tool)
        if joined:
            user, values = joined
            asked = [("", v) for v in values]
        else:
            user = _join(w, asked)
    else:
        user = _join(w, asked)
    calls = [o.call(values) for o, (_, values) in zip(chosen, asked)]
    results = [result(w, o.tool, values) for o, (_, values) in zip(chosen, asked)]
    names = " and ".join(c["name"] for c in calls)
    turn = Turn("tool", user, " ".join(r[1] for r in results), f"I need {names}.", {"calls": calls}, styled=False)
    turn.calls, turn.results = calls, [r[0] for r in results]
    return turn


def _join(w: World, asked: list[tuple[str, dict]]) -> str:
    texts = [text for text, _ in asked]
    if len(texts) == 1:
        return texts[0]
    first, second = texts[0].rstrip("?."), texts[1]
    end = "?" if texts[0].endswith("?") else "."
    lowered = second if second.startswith("I ") else second[0].lower() + second[1:]
    return w.rng.choice([f"{first}{end} {second}", f"{first}{end} And {lowered}", f"{first} and {lowered}", f"{first}, and {lowered}", f"{first}{end} Also {lowered}"])


def _same_tool_twice(w: World, tool: Tool) -> tuple[str, list[dict]] | None:
    """"The weather in X and Y": one phrase, two calls of the same tool."""
    if tool.name not in phrases.TWICE:
        return None
    param = tool.params[0]
    first, second = w.value(param.kind), w.value(param.kind)
    while second == first:
        second = w.value(param.kind)
    text = w.of(phrases.TWICE[tool.name]).format(first, second)
    return text, [{param.name: first}, {param.name: second}]


def _any_tool_twice(w: World, tool: Tool) -> tuple[str, list[dict]] | None:
    """The same of any tool with one value: a question for it that names two. Training only."""
    if w.held or len(tool.params) != 1 or w.chance(0.7 if tool.name in phrases.TWICE else 0.2):
        return None
    param = tool.params[0]
    mark = "{" + param.name + "}"
    template = w.rng.choice(tool.asks)
    if w.chance(0.2):
        template = blur(w, template)
    if mark not in template or f"{mark}'" in template:
        return None
    first, second = w.value(param.kind), w.value(param.kind)
    if first == second:
        return None
    both = w.rng.choice(["{} and {}", "{} and {}", "{} and {}", "{}, then {}", "{} and also {}", "{} as well as {}", "both {} and {}", "{} and then {}", "{} plus {}", "{} & {}", "first {}, then {}"])
    return template.replace(mark, both.format(first, second)), [{param.name: first}, {param.name: second}]


# --------------------------------------------------------------------------------------------------------- conversations


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


MEMORY = {
    "name": (lambda w: w.name(), "Nice to meet you, {v}!", "Your name is {v}.", "You have not told me your name."),
    "number": (lambda w: w.value("int"), "I will remember {v}.", "The number is {v}.", "You have not told me a number."),
    "word": (lambda w: w.word(), "I will remember {v}.", "The word is {v}.", "You have not told me a word."),
    "city": (lambda w: w.city(), "I have heard of {v}.", "You live in {v}.", "You have not told me where you live."),
    "pet": (lambda w: w.name(), "{v} is a nice name.", "Your pet is called {v}.", "You have not told me about a pet."),
    "colour": (lambda w: w.rng.choice(COLOURS), "{v} is a nice colour.", "Your favourite colour is {v}.", "You have not told me your favourite colour."),
}


def memory(w: World, told: Style) -> list[Turn]:
    """Tell something, talk about something else for up to two turns, ask for it; or ask without having told."""
    kind = w.rng.choice(["name", "name", *MEMORY])
    make, thanks, answer, unknown = MEMORY[kind]
    think = f"The user asks for the {kind}."
    question = say(w, f"ask_{kind}")
    if kind == "name" and told.user_name:
        value = told.user_name
        return [Turn("memory", question, answer.format(v=value), think, contains(value))]
    if w.chance(0.12):
        return [Turn("memory", question, unknown, think, contains(unknown))]
    value = make(w)
    reply = thanks.format(v=value)
    turns = [Turn("memory", say(w, f"tell_{kind}", v=value), reply[0].upper() + reply[1:], f"The user tells me a {kind}.", contains(value))]
    other = [k for k in MEMORY if k != kind]
    for _ in range(w.rng.choice([0, 0, 1, 1, 2])):
        if w.chance(0.35):
            distraction = w.rng.choice(other)
            second = MEMORY[distraction][0](w)
            said = MEMORY[distraction][1].format(v=second)
            turns.append(Turn("memory", say(w, f"tell_{distraction}", v=second), said[0].upper() + said[1:], f"The user tells me a {distraction}.", contains(second)))
        else:
            turns.append(plain_turn(w))
    turns.append(Turn("memory", question, answer.format(v=value), think, contains(value)))
    return turns


def missing_tool(w: World, offered: list[Offer]) -> Turn:
    """A request that needs a tool which is not there: the honest answer is no."""
    there = {o.tool.name for o in offered} | {"add", "multiply"}
    user, _ = ask(w, w.rng.choice([t for t in catalogue.FAMILIAR if t.name not in there]))
    return Turn("refusal", user, REFUSAL, "I have no tool for that.", contains(REFUSAL))


def side_turn(w: World, offered: list[Offer]) -> Turn:
    """An exchange that needs none of the tools on offer."""
    if w.chance(0.15):
        return missing_tool(w, offered)
    sums = {"add", "multiply"} & {o.tool.name for o in offered}
    while True:
        turn = w.rng.choice([plain_turn, chat])(w)
        if not (sums and turn.skill == "arithmetic"):
            return turn


PLAIN = {count: 8, spell: 11, reverse: 11, repeat: 9, upper: 8, arithmetic: 26, calendar: 6, capital: 8, colour: 5, lists: 9, story: 3, chat: 18}


HARDER = {spell: 7, reverse: 2, repeat: 3, upper: 8, arithmetic: 16, calendar: 4, lists: 3}  # more of these in training: they take longest to learn


def plain_turn(w: World) -> Turn:
    weights = [weight + (0 if w.held else HARDER.get(skill, 0)) for skill, weight in PLAIN.items()]
    return w.rng.choices(list(PLAIN), weights)[0](w)


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
    if w.chance(0.4):
        wanted = w.rng.choice([1, 1, 2])
        offered = offers(w, wanted)
        turns = [] if w.chance(0.12) else [tool_turn(w, _choose(w, offered, wanted))]
        while turns and len(turns) < 4 and w.chance(0.5):  # the declarations are long: ask more than once for their price
            turns.append(tool_turn(w, w.rng.sample(offered, 2) if len(offered) > 1 and w.chance(0.25) else [w.rng.choice(offered)] * w.rng.choice([1, 1, 2])))
        w.rng.shuffle(offered)
        if not turns or w.chance(0.2):
            turns.insert(w.rng.randint(0, len(turns)), side_turn(w, offered))
    elif w.chance(0.22):
        turns = memory(w, told)
    elif w.chance(0.16):
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


# ------------------------------------------------------------------------------------------------------------- rendering


def _environment() -> jinja2.Environment:
    env = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    env.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    return env


TEMPLATE_TEXT = (HERE / "chat_template.jinja").read_text()
_TEMPLATE = _environment().from_string(TEMPLATE_TEXT)


def render(messages: list[dict], tools: list[dict] = (), think: bool = False, prompt: bool = False) -> str:
    return _TEMPLATE.render(messages=messages, tools=list(tools), enable_thinking=think, add_generation_prompt=prompt)


_ANSWER = re.compile(r"(?<=<\|im_start\|>assistant\n)(.*?<\|im_end\|>\n)", re.S)


def segments(text: str) -> list[tuple[str, bool]]:
    """The rendered text cut into (piece, is it what the model writes?), for the loss mask."""
    return [(piece, i % 2 == 1) for i, piece in enumerate(_ANSWER.split(text)) if piece]


def main() -> None:
    w = World(random.Random(1))
    for _ in range(12):
        c = conversation(w)
        print(render(c.messages, c.tools, c.think))
        print("-" * 80)


if __name__ == "__main__":
    main()
