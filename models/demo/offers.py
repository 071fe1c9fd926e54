"""Tools as a request declares them: which ones, under what names, in what words."""

from __future__ import annotations

from dataclasses import dataclass

import tools as catalogue
from tools import VERBS, Tool, param_name
from world import World


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


def any_tool(w: World, strange: bool) -> Tool:
    """A tool to offer. Among strange ones nothing can be known by heart: the declarations have to be read."""
    roll = w.rng.random()
    if strange:
        return w.rng.choice(catalogue.OTHER) if roll < 0.45 else catalogue.made_up(w)
    if roll < 0.4:
        return w.rng.choice(catalogue.FAMILIAR[:4])
    if roll < 0.88:
        return w.rng.choice(catalogue.FAMILIAR)
    return w.rng.choice(catalogue.OTHER) if roll < 0.95 else catalogue.made_up(w)


def offers(w: World, wanted: int) -> list[Offer]:
    """The tools of one request, with different names; the first `wanted` are those that will be asked for."""
    found: list[Offer] = []
    extra, strange = w.rng.choice([0, 1, 1, 2, 2, 3, 3]), w.chance(0.4)
    while len(found) < wanted + extra:
        tool = any_tool(w, strange)
        if tool.name not in [o.tool.name for o in found]:
            new = offer(w, tool)
            if new.name not in [o.name for o in found]:
                found.append(new)
    return found
