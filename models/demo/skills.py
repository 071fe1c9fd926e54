"""The skills that need neither tools nor memory: counting, spelling, sums, capitals, lists, small talk. Each makes one turn."""

from __future__ import annotations

import phrases
import words
from turn import REFUSAL, SELF, Turn, contains, exact
from wording import dress, say
from world import World, is_held_pair


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


# How often each is asked for, and what training adds where learning takes longest.
PLAIN = {count: 8, spell: 11, reverse: 11, repeat: 9, upper: 8, arithmetic: 26, calendar: 6, capital: 8, colour: 5, lists: 9, story: 3, chat: 18}
HARDER = {count: 4, spell: 7, repeat: 2, upper: 6, arithmetic: 14, calendar: 2, lists: 8}


def plain_turn(w: World) -> Turn:
    weights = [weight + (0 if w.held else HARDER.get(skill, 0)) for skill, weight in PLAIN.items()]
    return w.rng.choices(list(PLAIN), weights)[0](w)
