"""The tools of the demo model's world, read from text/tools-*.txt, and tools that are made up on the spot.

A section's head is `name | description | parameters`; below it stand the ways in which people ask for the tool.
A parameter is `name:type:kind`, where kind says what values look like (see `World.value`); a `?` after the name makes it
optional: it is in the call only when the question has a value for it.

`FAMILIAR` tools are evaluated as "seen-style" tools, in phrasings of their own. `OTHER` tools are for training only.
`UNFAMILIAR` ones never occur in training, neither their names nor their parameters nor their questions.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import phrases
from words import MANY_NOUNS, MANY_VERBS, NOUNS
from world import World, is_held_text


class Param(NamedTuple):
    name: str
    type: str
    kind: str
    optional: bool = False


class Tool(NamedTuple):
    name: str
    description: str
    params: list[Param]
    asks: list[str]
    held_asks: list[str]


def _read(name: str) -> list[Tool]:
    tools = []
    for head, split in phrases.read_sections(name).items():
        title, description, params = (cell.strip() for cell in head.split("|"))
        parsed = []
        for param in filter(None, (p.strip() for p in params.split(","))):
            label, type_, kind = param.split(":")
            parsed.append(Param(label.rstrip("?"), type_, kind, label.endswith("?")))
        tools.append(Tool(title, description, parsed, split.train, split.held))
    return tools


def _telling(tool: Tool) -> Tool:
    """The tool with those ways of asking alone that share a word (or its beginning) with the name or the description.

    That is what a stranger's tool can be told by. The others could only be learnt by heart.
    """
    own = (_stems(tool.name) | _stems(tool.description)) - {"get", "the", "for", "and", "from", "one", "with", "some"}
    asks = [ask for ask in tool.asks if own & _stems(ask)]
    return tool._replace(asks=asks or tool.asks)


def _stems(text: str) -> set[str]:
    """The beginnings of its words, values left out."""
    return {word[:5].lower() for word in re.findall(r"[A-Za-z][a-z]{2,}", re.sub(r"\{\w+\}", "", text))}


FAMILIAR = _read("tools-familiar.txt")
OTHER = [_telling(tool) for tool in _read("tools-other.txt")]
UNFAMILIAR = _read("tools-unfamiliar.txt")

_TRAINED = [*FAMILIAR, *OTHER]
_bare = lambda t: t.name.replace("_", "").lower()  # noqa: E731
_KNOWN = {_bare(t) for t in [*_TRAINED, *UNFAMILIAR]}
assert not {_bare(t) for t in _TRAINED} & {_bare(t) for t in UNFAMILIAR}
_verb = lambda t: t.name.split("_")[0]  # noqa: E731
assert {_verb(t) for t in _TRAINED} & {_verb(t) for t in UNFAMILIAR} == {"get"}
assert not {p.name for t in _TRAINED for p in t.params} & {p.name for t in UNFAMILIAR for p in t.params}

# Made-up tools must not bring the words of the unfamiliar ones either.
_STRANGE = {word for t in UNFAMILIAR for label in [t.name, *(p.name for p in t.params)] for word in label.split("_")}
_usable = lambda listed: [word for word in listed if word not in _STRANGE and not is_held_text(word)]  # noqa: E731
ACTS, THINGS = _usable(MANY_VERBS), _usable(MANY_NOUNS)

# Words that stand for a parameter in renamed and made-up tools, with the JSON type they suggest.
PARAM_NAMES = {
    "string": """city place location person user name customer title label topic subject keyword query text message note object product
        thing colour room file folder path group team project key region country language song artist book author brand model category tag
        reason comment target source sender owner writer reader driver pilot dish shop street school farm tool part side style flavour
        shape size_name material planet bird flower""".split(),
    "integer": """count number amount quantity size limit id index page year age weight height width length price total level_number score
        minutes seconds days points copies weeks metres pages people boxes rounds grams litres floors rows lines steps percent""".split(),
}
VERBS = """get find make create start stop open close check update add remove show send move copy save load print build clean count draw
    fix give hide join keep lift mark name order pack pick pull push read sell sort test turn wash wrap write load_new make_new
    bake bend boil borrow break bring brush buy call carry catch change climb collect colour cook cool cover crush cut dance dig drop dry
    empty fill fold gather grow hang heat hold iron kick land lend light list measure melt mix note paint peel phone plan play polish
    post pour press prove raise record repair rest ring roll rub scrub shake sharpen shut sign slice smoke spread stack stir stretch sweep
    swim switch taste tear throw tie touch trim visit wake warm weigh wind wipe""".split()


def param_name(w: World, type_: str) -> str:
    """A name for a parameter of this JSON type: a listed word, maybe with an ending, or one that nobody has seen."""
    known = PARAM_NAMES["integer" if type_ in ("integer", "number") else "string"]
    if w.held or w.chance(0.45):
        return w.invented()
    name = w.rng.choice(known)
    return f"{name}_{w.rng.choice(['id', 'name', 'value', 'a', 'b', w.invented()])}" if w.chance(0.15) else name


# ----------------------------------------------------------------------------------------------------- made-up tools

_TEXT_KINDS = "word word person city code topic sentence path day colour room email clock".split()


def made_up(w: World) -> Tool:
    """A tool that exists nowhere, with a handful of ways to ask for it, each built from the tool's own words.

    There is nothing to remember about such a tool: which one is meant and what goes where can only be read off the
    declaration. That is the skill that carries over to the tools of strangers.
    """
    params: list[Param] = []
    for _ in range(w.rng.choice([0, 1, 1, 1, 1, 2, 2, 2, 3])):
        type_ = w.rng.choice(["string", "string", "string", "integer", "integer", "number"])
        name = param_name(w, type_)
        if name not in [p.name for p in params]:
            params.append(Param(name, type_, w.rng.choice(_TEXT_KINDS) if type_ == "string" else w.rng.choice(["int", "small"])))
    verb = w.rng.choice([w.invented, lambda: w.rng.choice(VERBS), lambda: w.rng.choice(ACTS), lambda: w.rng.choice(ACTS)])()
    thing = _thing(w)
    if w.chance(0.15):
        thing = f"{thing}_{_thing(w)}"
    made = _made_up_question(w, thing, params) if w.chance(0.3) else _made_up_act(w, verb, thing, params)
    return made_up(w) if _bare(made) in _KNOWN else made  # syllables may happen to spell "time"


def _thing(w: World) -> str:
    return w.rng.choice([w.invented, lambda: w.of(NOUNS), lambda: w.rng.choice(THINGS), lambda: w.rng.choice(THINGS)])()


def _made_up_question(w: World, thing: str, params: list[Param]) -> Tool:
    """A tool that looks something up: "What is the tide in Porto?"."""
    shown, first = thing.replace("_", " "), params[:1]
    verb = w.rng.choice("get get get read show find check".split())
    of = f" of a {first[0].name.replace('_', ' ')}" if first and w.chance(0.6) else ""
    asks = [
        f"What is the {shown}",
        f"{shown.capitalize()}",
        f"Tell me the {shown}",
        f"I need the {shown}",
        f"Give me the {shown}",
        f"How is the {shown}",
        f"When is the {shown}",
        f"Where is the {shown}",
        f"Which {shown} is there",
        f"I want to know the {shown}",
        f"Show the {shown}",
        f"Do we have a {shown}",
        f"What about the {shown}",
        f"What do you know about the {shown}",
    ]
    texts = [_with_values(w, ask, params, w.rng.choice([" of", " in", " at", " for", " on", "", " with"])) for ask in w.rng.sample(asks, 4)]
    return Tool(f"{verb}_{thing}", f"{verb.capitalize()} the {shown}{of}", params, texts, [])


def _made_up_act(w: World, verb: str, thing: str, params: list[Param]) -> Tool:
    """A tool that does something: "Lock the garage door", "Please lock the garage"."""
    shown, act = thing.replace("_", " "), verb.replace("_", " ")
    heads = [
        f"{act} {shown}",
        f"{act} the {shown}",
        f"{act} a {shown}",
        f"I want to {act} the {shown}",
        f"I would like to {act} a {shown}",
        f"please {act} the {shown}",
        f"we must {act} the {shown}",
        f"let us {act} {shown}",
        f"can you {act} a {shown}",
        f"{act} my {shown}",
        f"time to {act} the {shown}",
        f"use {verb}_{thing}",
        f"{act}",
        f"please {act}",
        f"I have to {act}",
        f"the {shown}",
        f"I need a {shown}",
        f"my {shown}",
    ]
    join = lambda: w.rng.choice(["", "", " for", " to", " at", " in", " with", " on", " from", ":", ","])  # noqa: E731
    texts = []
    for head in w.rng.sample(heads, 4):
        head = head if w.chance(0.25) else head[0].upper() + head[1:]
        texts.append(_in_front(w, head, params) or _with_values(w, head, params, join()))
    tail = w.rng.choice(["", "", " for a {}", " with a {}", " to a {}", " in a {}"]).format(params[0].name.replace("_", " ")) if params else ""
    return Tool(f"{verb}_{thing}", f"{act.capitalize()} {w.rng.choice(['a', 'the', 'one'])} {shown}{tail}", params, texts, [])


def _named(w: World, param: Param) -> str:
    """A value with its parameter's name: "the size is 4", "4 boxes"."""
    label = param.name.replace("_", " ") if w.chance(0.7) else param.name
    styles = ["{k} {v}", "{k}: {v}", "{k} = {v}", "{k} is {v}", "the {k} is {v}", "the {k} {v}", "{v} as {k}", "{v} for the {k}", "the {k} should be {v}"]
    if param.type != "string":
        styles += ["{v} {k}"] * 6
    return w.rng.choice(styles).format(k=label, v="{" + param.name + "}")


def _with_values(w: World, head: str, params: list[Param], link: str) -> str:
    """`head`, then all values: bare where the type or the order tells which is which, else with their names."""
    if not params:
        return head
    kinds = [p.type == "string" for p in params]
    distinct = len(set(kinds)) == len(kinds)
    order = list(params)
    bare = w.chance(0.55)
    if bare and not distinct and w.chance(0.5):
        bare = False
    if distinct or not bare:
        w.rng.shuffle(order)
    parts = []
    for i, param in enumerate(order):
        alone = bare and (param.type == "string" or i == 0 or w.chance(0.4))
        parts.append("{" + param.name + "}" if alone else _named(w, param))
    text = head + (link if bare else w.rng.choice([" with", ",", ":", " where", ".", " for", ""])) + " " + parts[0]
    for part in parts[1:]:
        text += w.rng.choice([" and ", ", ", " with ", " for ", " to ", " at ", " in ", " by ", " minus "] if bare else [" and ", ", ", " with ", " for "]) + part
    return text


def _in_front(w: World, head: str, params: list[Param]) -> str | None:
    """Values before the order: "For Anna, pack the bag", "The size is 4, pack the bag"."""
    if len(params) != 1 or not w.chance(0.2):
        return None
    value = "{" + params[0].name + "}"
    lowered = head if head.startswith("I ") else head[0].lower() + head[1:]
    return w.rng.choice([f"{value}, {lowered} it", f"For {value} {lowered}", f"{_named(w, params[0])}, {lowered}", f"{value}: {lowered}", f"In {value} {lowered}", f"The {params[0].name} {value}, {lowered} it"])
