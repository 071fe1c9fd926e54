"""Something told, and asked for after a while: a name, a number, a city."""

from __future__ import annotations

from skills import plain_turn
from styles import Style
from turn import Turn, contains
from wording import say
from world import COLOURS, World

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
