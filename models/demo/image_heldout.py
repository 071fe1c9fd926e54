"""Writes the held-out questions about pictures, for the evaluation: other pictures, typefaces and phrasings than in training.

    python image_heldout.py             writes eval-images.jsonl, in the form of eval.jsonl
"""

from __future__ import annotations

import base64
import io
import json
import random
from pathlib import Path

from image_pictures import Image, Label, picture
from image_questions import answer, phrasing

FIRST = 10_000  # the held-out pictures before it are looked at in training
PARTS = {"describe": 60, "colour": 50, "shape": 40, "count": 50, "digit": 40}
MAX_PNG = 3000  # bytes; larger files, those with noise, are JPEG


def data_url(image: Image.Image) -> str:
    file, kind = io.BytesIO(), "png"
    image.save(file, "PNG", optimize=True)
    if file.tell() > MAX_PNG:
        file, kind = io.BytesIO(), "jpeg"
        image.save(file, "JPEG", quality=80)
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"


def fits(question: str, label: Label) -> bool:
    return question in ("describe", "colour") or (label.digit is not None) == (question == "digit")


def main() -> None:
    r, seed, lines = random.Random(31), FIRST, []
    for question, count in PARTS.items():
        for number in range(count):
            image, label = picture(seed, held=True)
            while not fits(question, label):
                seed += 1
                image, label = picture(seed, held=True)
            seed += 1
            parts = [{"type": "image_url", "image_url": {"url": data_url(image)}}, {"type": "text", "text": phrasing(question, r, held=True)}]
            content = parts if r.random() < 0.7 else parts[::-1]
            lines.append(
                {
                    "id": f"image-{question}-{number}",
                    "skill": f"image {question}",
                    "request": {"messages": [{"role": "user", "content": content}]},
                    "check": {"exact": answer(question, label)},
                }
            )
    out = Path(__file__).parent / "eval-images.jsonl"
    out.write_text("".join(json.dumps(line) + "\n" for line in lines))
    print(f"{out}: {len(lines)} questions, {out.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
