"""Draws the pictures that the image encoder learns from: coloured shapes and digits, of any size and background, each from a number.

The same seed draws the same picture with the same version of Pillow and the same fonts. Digits of the held-out pictures have typefaces
that are not in training.
"""

from __future__ import annotations

import io
import math
import random
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from PIL import Image, ImageDraw, ImageFilter, ImageFont

COLOURS = {  # ranges of hue in degrees, saturation and lightness
    "red": ((-9, 7), (0.75, 1.0), (0.38, 0.54)),
    "orange": ((24, 36), (0.9, 1.0), (0.47, 0.56)),
    "yellow": ((50, 60), (0.85, 1.0), (0.46, 0.58)),
    "green": ((100, 145), (0.55, 1.0), (0.25, 0.48)),
    "blue": ((208, 240), (0.65, 1.0), (0.35, 0.58)),
    "purple": ((270, 295), (0.5, 0.95), (0.3, 0.52)),
    "black": ((0, 360), (0.0, 0.1), (0.0, 0.08)),
    "white": ((0, 360), (0.0, 0.1), (0.95, 1.0)),
}
SHAPES = ["circle", "square", "triangle", "star", "heart"]
MAX_COUNT = 4
FOLDERS = ["/usr/share/fonts/truetype/dejavu", "/usr/share/fonts/truetype/liberation"]
HELD_OUT_FONTS = ["LiberationSans-Bold.ttf", "DejaVuSansMono-Bold.ttf", "LiberationSerif-Regular.ttf", "DejaVuSansCondensed.ttf"]


@dataclass(frozen=True)
class Label:
    """What is in a picture: `count` shapes of one colour, or one digit."""

    colour: str
    shape: str | None
    count: int
    digit: int | None


@cache
def fonts(held: bool) -> list[str]:
    found = [p for folder in FOLDERS for p in sorted(Path(folder).glob("*.ttf")) if "TeX" not in p.name and "Narrow" not in p.name]
    return [str(p) for p in found if (p.name in HELD_OUT_FONTS) == held]


def _rgb(hue: float, saturation: float, lightness: float) -> tuple[int, int, int]:
    import colorsys

    return tuple(round(255 * c) for c in colorsys.hls_to_rgb(hue % 360 / 360, lightness, saturation))


def _colour(r: random.Random, name: str) -> tuple[int, int, int]:
    return _rgb(*(r.uniform(*bounds) for bounds in COLOURS[name]))


def _background(r: random.Random, fore: tuple[int, int, int]) -> tuple[int, int, int]:
    """A colour that differs from the foreground's."""
    while True:
        way = r.random()
        if way < 0.3:
            back = _rgb(0, 0, r.uniform(0.93, 1))
        elif way < 0.42:
            back = _rgb(0, 0, r.uniform(0, 0.1))
        elif way < 0.65:
            back = _rgb(0, 0, r.random())
        elif way < 0.9:
            back = _rgb(r.uniform(0, 360), r.uniform(0.2, 0.9), r.uniform(0.78, 0.93))  # a light tint
        else:
            back = _rgb(r.uniform(0, 360), r.uniform(0.1, 0.5), r.uniform(0.1, 0.35))  # a dark one
        weights = (0.3, 0.59, 0.11)
        distance = math.sqrt(sum((a - b) ** 2 for a, b in zip(fore, back)))
        contrast = abs(sum(w * (a - b) for w, a, b in zip(weights, fore, back)))
        if distance > 130 and contrast > 18:
            return back


def _outline(shape: str, r: random.Random) -> list[tuple[float, float]]:
    """The corners of a shape within a circle of radius 1."""
    turn = r.uniform(-0.2, 0.2)
    if shape == "circle":
        corners, turn = [(math.cos(a * math.pi / 24), math.sin(a * math.pi / 24)) for a in range(48)], 0.0
    elif shape == "square":
        corners = [(0.8, 0.8), (-0.8, 0.8), (-0.8, -0.8), (0.8, -0.8)]
    elif shape == "triangle":
        top = r.uniform(-0.25, 0.25)
        corners = [(top, -0.95), (0.95, r.uniform(0.6, 0.8)), (-0.95, r.uniform(0.6, 0.8))]
    elif shape == "star":
        inner = r.uniform(0.38, 0.48)
        turns = [(math.pi * i / 5 - math.pi / 2, inner if i % 2 else 1.0) for i in range(10)]
        corners = [(length * math.cos(a), length * math.sin(a)) for a, length in turns]
    else:
        steps = [2 * math.pi * i / 40 for i in range(40)]
        corners = [(math.sin(t) ** 3, -(13 * math.cos(t) - 5 * math.cos(2 * t) - 2 * math.cos(3 * t) - math.cos(4 * t)) / 16) for t in steps]
    cos, sin = math.cos(turn), math.sin(turn)
    return [(x * cos - y * sin, x * sin + y * cos) for x, y in corners]


def _places(r: random.Random, count: int, width: int, height: int) -> list[tuple[float, float, float]]:
    """Centres and radii of shapes that do not touch each other."""
    short = min(width, height)
    while True:
        size = r.uniform(0.24, 0.46) if count == 1 else r.uniform(0.12, (0.3, 0.22, 0.2)[count - 2])
        found: list[tuple[float, float, float]] = []
        for _ in range(60):
            radius = size * short * (1 if count == 1 else r.uniform(0.85, 1.1))
            x, y = r.uniform(radius, width - radius), r.uniform(radius, height - radius)
            if all(math.hypot(x - a, y - b) > 1.12 * (radius + c) for a, b, c in found):
                found.append((x, y, radius))
            if len(found) == count:
                return found


def picture(seed: int, held: bool = False) -> tuple[Image.Image, Label]:
    """The picture of a number, in RGB, and what is in it."""
    r = random.Random(f"{'held' if held else 'train'} {seed}")
    width = round(math.exp(r.uniform(math.log(48), math.log(280))))
    height = width if r.random() < 0.5 else max(40, min(300, round(width * math.exp(r.uniform(-0.5, 0.5)))))
    name = r.choice(list(COLOURS))
    fore = _colour(r, name)
    back = _background(r, fore)
    scale = 2 if r.random() < 0.8 else 1
    image = Image.new("RGB", (width * scale, height * scale), back)
    if r.random() < 0.15:
        other = tuple(max(0, min(255, c + r.randint(-22, 22))) for c in back)
        ramp = Image.linear_gradient("L").rotate(r.choice([0, 90, 180, 270])).resize(image.size)
        image = Image.composite(Image.new("RGB", image.size, other), image, ramp)
    draw = ImageDraw.Draw(image)
    if r.random() < 0.42:
        label = Label(name, None, 1, r.randrange(10))
        _digit(r, draw, image.size, label.digit, fore, held)
    else:
        count = r.choice([1, 1, 1, 2, 3, 4])
        label = Label(name, r.choice(SHAPES), count, None)
        corners = _outline(label.shape, r)
        for x, y, radius in _places(r, count, *image.size):
            draw.polygon([(x + radius * a, y + radius * b) for a, b in corners], fill=fore)
    if scale == 2:
        image = image.resize((width, height), Image.BOX)
    return _worn(r, image), label


def _digit(r: random.Random, draw: ImageDraw.ImageDraw, size: tuple[int, int], digit: int, fore: tuple[int, int, int], held: bool) -> None:
    tall = r.uniform(0.45, 0.88) * min(size)
    font = ImageFont.truetype(r.choice(fonts(held)), round(tall * 1.36))
    left, top, right, bottom = draw.textbbox((0, 0), str(digit), font=font)
    x = r.uniform(0.02 * size[0], max(0.03, 0.98 * size[0] - (right - left)))
    y = r.uniform(0.02 * size[1], max(0.03, 0.98 * size[1] - (bottom - top)))
    draw.text((x - left, y - top), str(digit), font=font, fill=fore)


def _worn(r: random.Random, image: Image.Image) -> Image.Image:
    """A little blur, noise and the artefacts of JPEG, as pictures have that were sent around."""
    if r.random() < 0.15:
        image = image.filter(ImageFilter.GaussianBlur(r.uniform(0.3, 0.012 * min(image.size))))
    if r.random() < 0.25:
        noise = Image.effect_noise(image.size, r.uniform(4, 30)).convert("RGB")
        image = Image.blend(image, noise, r.uniform(0.03, 0.1))
    if r.random() < 0.3:
        file = io.BytesIO()
        image.save(file, "JPEG", quality=r.randint(55, 95))
        image = Image.open(file).convert("RGB")
    return image


PAD_COLOUR = (122, 116, 104)


def fitted(image: Image.Image, size: int, way: int = Image.BICUBIC, pad: tuple[int, int, int] = PAD_COLOUR) -> Image.Image:
    """A square picture, as llama.cpp makes it for LLaVA (mtmd-image.cpp, `mtmd_image_preprocessor_fixed_size`): scaled, and padded."""
    scale = min(size / image.width, size / image.height)
    width, height = (min(size, math.ceil(side * scale)) for side in image.size)
    square = Image.new("RGB", (size, size), pad)
    square.paste(image.resize((width, height), way), ((size - width) // 2, (size - height) // 2))
    return square
