"""The demo model's small world: word lists and facts, split into what training may use and what only the evaluation uses.

Every open list (names, cities, nouns, ...) is a `Split(train, held)`. Training draws from `train` and from random
syllables; the evaluation draws from `held`. `check_split` proves at import that the two never share an entry.
Closed facts (days, months, capitals, colours) have to be learnt, so they are in both; there the *questions* are held out.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Split(NamedTuple):
    """Two lists that must not meet: `train` may appear in training text, `held` only in the evaluation."""

    train: list[str]
    held: list[str]


def _words(text: str) -> list[str]:
    return text.split()


def _listed(name: str) -> list[str]:
    """The words of text/`name`, which holds one letter's words on each line. Training only."""
    return (Path(__file__).parent / "text" / name).read_text().split()


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines() if line.strip()]


NAMES = Split(
    _words(
        """Ada Ben Clara David Emma Felix Grace Hugo Ida Jonas Kira Leo Maria Nils Olga Paul Rosa Sam Tina Umar Vera Will Xenia
        Yusuf Zoe Anton Bella Carl Dora Erik Fiona Georg Hanna Ivan Julia Karim Lena Marco Nadia Oscar Petra Quentin Rita Simon
        Tara Ursula Victor Wanda Yara Zack Alice Bruno Chloe Daniel Elsa Frank Gina Henry Irene Jack Kate Lukas Mona Noah Olive
        Peter Rachel Stefan Tom Violet Wendy Aisha Boris Cora Dylan Eva Fred Greta Harry Isaac Jasmin Kevin Lucy Martin Nora"""
    ),
    _words(
        """Amelia Bjorn Celeste Dmitri Esther Farid Gwen Hector Imogen Jasper Keiko Lorenzo Mireille Nadine Orson Priya Rafael
        Selma Tobias Ulrike Viktor Winona Ximena Yannick Zelda Matilda Conrad Beatrix Rupert Odessa"""
    ),
)

CITIES = Split(
    _lines(
        """Hamburg
        Munich
        Lyon
        Milan
        Naples
        Porto
        Seville
        Krakow
        Gothenburg
        Bergen
        Manchester
        Glasgow
        Boston
        Chicago
        Seattle
        Denver
        Toronto
        Montreal
        Sydney
        Melbourne
        Osaka
        Kyoto
        Mumbai
        Shanghai
        Istanbul
        Barcelona
        Geneva
        Zurich
        Antwerp
        Rotterdam
        Dallas
        Miami
        Atlanta
        Phoenix
        Portland
        Houston
        Detroit
        New York
        San Diego
        Los Angeles
        Las Vegas
        Cape Town
        Rio de Janeiro
        Sao Paulo
        Lagos
        Casablanca
        Dubai
        Delhi
        Busan
        Auckland
        Perth
        Brisbane
        Leipzig
        Dresden
        Cologne
        Nantes
        Turin
        Bologna
        Valencia
        Malaga
        Paris
        London
        Tokyo
        Berlin
        Rome
        Madrid"""
    ),
    _lines(
        """Stuttgart
        Marseille
        Palermo
        Bilbao
        Gdansk
        Malmo
        Stavanger
        Liverpool
        Edinburgh
        Philadelphia
        Minneapolis
        Salt Lake City
        Vancouver
        Adelaide
        Nagoya
        Bangalore
        Shenzhen
        Izmir
        Basel
        Ghent
        Utrecht
        Salvador
        Marrakesh
        San Francisco
        New Orleans"""
    ),
)

NOUNS = Split(
    _words(
        """apple table river cloud stone window garden lamp paper bread horse tiger chair pencil bottle mirror candle forest bridge
        castle flower silver button pocket winter summer doctor farmer letter number market orange purple yellow rabbit monkey
        basket ladder hammer needle island planet rocket engine ticket jacket carpet pepper butter cheese cookie banana cherry
        lemon melon onion potato tomato carrot book tree fish bird door wall road ship train house mouse night light water fire
        wind rain snow star moon sun milk cup hat shoe coat ring coin key box bag map bell drum song film game ball hill lake
        sand gold iron wood wool silk rope sail boat bike car truck plane clock phone radio camera guitar piano violin"""
    ),
    _words(
        """anchor blanket compass dolphin feather glove helmet jungle kettle lantern magnet napkin oyster parrot quilt ribbon saddle
        tunnel umbrella velvet walnut zipper acorn beetle cactus dragon eagle falcon goat harbor ivory jelly kite lizard marble
        nest otter panda robin spoon"""
    ),
)

TOPICS = Split(
    _lines(
        """solar panels
        cheap flights
        green tea
        jazz music
        old castles
        electric cars
        garden tools
        winter boots
        apple pie
        space travel
        fast trains
        small dogs
        wooden toys
        chess rules
        good coffee
        running shoes
        bird songs
        paper boats
        city parks
        hot soup
        red wine
        open source
        film music
        deep sea fish
        rain coats
        phone prices
        football news
        blue whales
        mountain bikes
        bread recipes"""
    ),
    _lines(
        """volcano tours
        medieval maps
        vegan burgers
        sailing lessons
        piano repairs
        lunar eclipses
        bamboo furniture
        desert animals
        ancient coins
        glass bottles
        mushroom soup
        steam engines
        tulip festivals
        night markets
        ski resorts"""
    ),
)

SENTENCES = Split(
    _lines(
        """the cat sat on the mat
        we like warm bread
        my dog runs fast
        the sun is bright today
        she reads a good book
        birds sing in the morning
        the train is late again
        he plays the guitar
        rain falls on the roof
        I have two red shoes
        the river is cold
        open the small window
        stars shine at night
        they walk to the market
        green apples are sour
        the old clock stopped
        a ship sails home
        this tea is too hot"""
    ),
    _lines(
        """the fox hides under a bush
        our boat needs a new sail
        snow covers the quiet village
        three mice ate the cheese
        the baker sells fresh rolls
        a blue kite flies high
        the piano sounds lovely
        my uncle paints old doors
        wolves howl at the moon
        the lamp is on the desk"""
    ),
)

# Everyday words, for training only: they stand where a request may hold anything, so that an unknown word means nothing special.
COMMON = _words(
    """the of and to in is you that it he was for on are as with his they I at be this have from or one had by but not what all were we
    when your said there use an each which she do how their if will up other about out many then them these so some her would make like
    him into time has look two more go see way could people my than first been call who its now find long down day did get come made may
    part over new sound take only little work know place year live me back give most very after thing our just good man think say great
    where help through much before line right too mean old any same tell boy follow came want show also around form three small set put
    end does another well large must big even such because turn here why ask went men read need land home us move try kind hand again
    change off play air away animal point page letter mother answer found study still learn should world high every near add between own
    below country last school father keep never start city eye light thought head under story saw left few while along might close seem
    next hard open example begin life always those both paper together got group often run important until side feet mile night walk
    white sea began grow took four carry state once book hear stop without second later miss idea enough eat face watch far really
    almost let above girl sometimes mountain cut young talk soon list song being leave family body music colour stand sun question fish
    area mark dog horse bird problem complete room knew since ever piece told usually friends easy heard order red door sure become top
    ship across today during short better best however low hours black products happened whole measure remember early waves reached
    nice happy lovely quick fun maybe perhaps bit lot stuff job everyone somebody anything nothing yesterday tomorrow morning evening
    week month office table window money price shop car bus phone screen button test check look fine okay cool great sorry thanks"""
)

# Many plain words, so that no tool and no text can be known by its words alone.
MANY_VERBS = _listed("verbs.txt")
MANY_NOUNS = _listed("nouns.txt")

DAYS = _words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
MONTHS = _words("January February March April May June July August September October November December")

CAPITALS = {
    "France": "Paris",
    "Germany": "Berlin",
    "Italy": "Rome",
    "Spain": "Madrid",
    "Portugal": "Lisbon",
    "Austria": "Vienna",
    "Switzerland": "Bern",
    "Belgium": "Brussels",
    "Poland": "Warsaw",
    "Greece": "Athens",
    "Sweden": "Stockholm",
    "Norway": "Oslo",
    "Denmark": "Copenhagen",
    "Finland": "Helsinki",
    "Ireland": "Dublin",
    "Hungary": "Budapest",
    "Turkey": "Ankara",
    "Egypt": "Cairo",
    "Kenya": "Nairobi",
    "Japan": "Tokyo",
    "China": "Beijing",
    "India": "New Delhi",
    "Canada": "Ottawa",
    "Brazil": "Brasilia",
    "Argentina": "Buenos Aires",
    "Chile": "Santiago",
    "Peru": "Lima",
    "Cuba": "Havana",
    "Mexico": "Mexico City",
    "Australia": "Canberra",
    "England": "London",
    "Russia": "Moscow",
}

THING_COLOURS = {
    "the sky": "blue",
    "grass": "green",
    "snow": "white",
    "coal": "black",
    "blood": "red",
    "a banana": "yellow",
    "a lemon": "yellow",
    "a carrot": "orange",
    "a tomato": "red",
    "chocolate": "brown",
    "the sea": "blue",
    "milk": "white",
    "a frog": "green",
    "an elephant": "grey",
    "a flamingo": "pink",
    "an orange": "orange",
}

COLOUR_MIXES = {
    ("blue", "yellow"): "green",
    ("red", "yellow"): "orange",
    ("red", "blue"): "purple",
    ("red", "white"): "pink",
    ("black", "white"): "grey",
}

CATEGORIES = {
    "colours": _words("red blue green yellow orange purple brown"),
    "animals": _words("cat dog horse cow sheep lion bear"),
    "fruits": _words("apple banana cherry grape lemon orange pear"),
    "days": DAYS,
    "months": MONTHS[:7],
    "planets": _words("Mercury Venus Earth Mars Jupiter Saturn Uranus"),
    "vegetables": _words("carrot potato onion tomato pea bean corn"),
    "countries": _words("France Germany Italy Spain Japan India Canada"),
    "shapes": _words("circle square triangle star oval cube cone"),
    "drinks": _words("water tea coffee milk juice lemonade cocoa"),
}

NUMBER_WORDS = _words("zero one two three four five six seven eight nine ten")
ORDINALS = _words("first second third fourth fifth")

CONDITIONS = Split(_words("sunny cloudy rainy windy foggy snowy stormy clear"), _words("misty overcast humid drizzly"))
TIMEZONES = Split(
    _words(
        """Europe/Berlin Europe/Paris Europe/London America/New_York America/Chicago Asia/Tokyo Asia/Shanghai Australia/Sydney
        Africa/Cairo America/Denver Asia/Dubai Asia/Kolkata Europe/Madrid Europe/Rome Pacific/Auckland UTC"""
    ),
    _words("Europe/Lisbon Europe/Vienna America/Toronto Asia/Seoul Africa/Nairobi Asia/Singapore Europe/Warsaw America/Lima"),
)


def check_split() -> None:
    """Fail loudly if an entry stands on both sides: a leak would make every score in the model card worthless."""
    for name, value in list(globals().items()):
        if isinstance(value, Split):
            shared = {w.lower() for w in value.train} & {w.lower() for w in value.held}
            assert not shared, f"{name}: {shared} is in training and in the evaluation"
    common = {w.lower() for w in COMMON} & {w.lower() for w in NOUNS.held}
    assert not common, common
    known = {w.lower() for w in [*CAPITALS.values()]}
    leaked = known & {w.lower() for w in CITIES.held}
    assert not leaked, leaked


check_split()
