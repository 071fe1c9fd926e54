"""Turns that call tools: the question, one call or two, what the tools gave back, and the answer made of it."""

from __future__ import annotations

import json

import phrases
import tools as catalogue
import words
from offers import Offer
from tools import Tool, param_name
from turn import REFUSAL, Turn, contains
from wording import blur, murmur_after, murmur_before
from world import World


def ask(w: World, tool: Tool) -> tuple[str, dict]:
    """A question for this tool, and the argument values it names."""
    values = {p.name: w.value(p.kind) for p in tool.params}
    template = w.rng.choice(tool.held_asks if w.held else tool.asks)
    if not w.held and w.chance(0.2):
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


def missing_tool(w: World, offered: list[Offer]) -> Turn:
    """A request that needs a tool which is not there: the honest answer is no."""
    there = {o.tool.name for o in offered} | {"add", "multiply"}
    user, _ = ask(w, w.rng.choice([t for t in catalogue.FAMILIAR if t.name not in there]))
    return Turn("refusal", user, REFUSAL, "I have no tool for that.", contains(REFUSAL))
