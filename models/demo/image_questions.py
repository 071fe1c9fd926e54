"""What is asked about a picture, and the right answers. The phrasings of each question are followed by those held out for the evaluation."""

from __future__ import annotations

import random

from image_pictures import Label

SYNONYMS = [["colour", "color"], ["image", "picture", "photo", "drawing"], ["Tell me", "Say", "Name"], ["shapes", "things", "objects"], ["Which", "What"]]
NUMBERS = ["zero", "one", "two", "three", "four"]

PHRASINGS: dict[str, tuple[list[str], list[str]]] = {
    "describe": (
        [
            "What do you see?", "What can you see?", "Describe the image.", "Describe this picture.", "What is in this image?",
            "What is in the picture?", "What is this?", "What's this?", "What is shown here?", "What does the image show?",
            "What does this picture show?", "Tell me what you see.", "Describe what you see.", "Can you describe this image?",
            "Please describe the picture.", "What is it?", "Look at this.", "What do you see in this image?", "What do you see here?",
            "What do you see in the picture?", "What can be seen in the image?", "Say what is in the picture.", "Explain this image.",
            "Caption this image.", "Write a caption for the picture.", "What am I looking at?", "What did I draw?", "Describe it.",
            "Could you tell me what this is?", "What is on the image?", "What is on this picture?", "Do you know what this is?",
            "Look at the image and describe it.", "Describe the image in one sentence.", "I drew this. What is it?", "",
        ],
        [
            "What do you see on this picture?", "Describe this image.", "What is in this picture?", "What is shown in the image?",
            "Tell me what is in the image.", "Please describe the image.", "Can you tell me what you see?", "What can you see here?",
        ],
    ),
    "colour": (
        [
            "Which colour is it?", "What colour is it?", "What color is it?", "Which color is this?", "What colour is this?",
            "What colour do you see?", "Which colour does it have?", "What is the colour?", "What is the color of it?",
            "Name the colour.", "Tell me the colour.", "Which colour has it?", "In which colour is it?", "What colour did I use?",
            "What color was used?", "Say the colour.", "What is its colour?", "Which colour do you see in the image?",
            "What colour is in the picture?", "Please name the color.", "And the colour?", "Can you name the colour?",
            "Which colour is shown in this picture?", "What color is the thing in the image?",
            "What is the colour in this image?", "Do you know the colour?", "The colour, please.", "What colour can you see?",
            "Which colour is used here?", "Say which colour it is.", "What colour is there?", "What colour does the picture show?",
        ],
        [
            "What color is this?", "Which colour is this?", "Which colour do you see?", "Tell me the color.",
            "What is its color?", "What colour is shown?",
        ],
    ),
    "shape": (
        [
            "Which shape is it?", "What shape is it?", "What shape is this?", "What shape do you see?", "Which shape does it have?",
            "What is the shape?", "Name the shape.", "Tell me the shape.", "Say the shape.", "What kind of shape is it?",
            "Which shape is in the picture?", "What shape is in the image?", "Please name the shape.", "And the shape?",
            "Which shape did I draw?", "Can you name the shape?", "What form does it have?", "Which shapes do you see?",
            "What shapes are in the picture?", "Which geometric shape is shown?", "What is its shape?", "Tell me what shape this is.",
            "What is the shape in the image?", "Do you know the shape?", "What shape can you see?", "Say which shape you see.",
            "The shape, please.", "What shape is there?", "Which shape can be seen?", "What shape does the picture show?",
        ],
        [
            "Which shape is this?", "Which shape do you see?", "What shape is shown?", "Which shape is shown here?", "Tell me which shape it is.",
            "What shape is in the picture?",
        ],
    ),
    "digit": (
        [
            "Which digit is it?", "What digit is this?", "Which digit do you see?", "What digit is it?", "Which number is it?",
            "What number is this?", "Which number do you see?", "What number do you see?", "Read the digit.", "Read the number.",
            "Name the digit.", "Tell me the digit.", "Tell me the number.", "What digit is in the picture?", "Which digit is in the image?",
            "What number is shown?", "Which digit did I write?", "What number did I write?", "Please read the digit.", "And the digit?",
            "What does the number say?", "Can you read the number?", "Say which digit it is.", "What is the digit?", "What is the number?",
            "Which number is in the image?", "The digit, please.", "Which number can you see?", "Which digit does the picture show?",
        ],
        [
            "Which digit is this?", "What digit do you see?", "Which number is this?", "What number is it?", "Which digit is shown?",
            "What number is in the picture?",
        ],
    ),
    "count": (
        [
            "How many are there?", "How many do you see?", "How many shapes are there?", "How many shapes do you see?",
            "How many things are in the picture?", "How many things do you see?", "How many objects are there?", "Count the shapes.",
            "Count them.", "Count the objects in the image.", "How many are in the image?", "How many shapes are in this picture?",
            "What is the number of shapes?", "How many can you see?", "How many shapes did I draw?", "Tell me how many there are.",
            "How many of them are there?", "Please count the shapes.", "How many of them do you see?", "How many shapes can you count?",
            "How many is it?", "What is the count?", "How many, please?", "Do you know how many there are?", "Say how many you can see.",
            "How many shapes does the picture show?", "How many objects are shown?", "Count what you see.", "How many things can you see?",
        ],
        [
            "How many shapes are in the image?", "How many objects do you see?", "How many are in the picture?", "Tell me how many you see.",
            "How many things are there?", "How many shapes can you see?",
        ],
    ),
}

assert not any(set(known) & set(held) for known, held in PHRASINGS.values()), "a phrasing is in training and held out"


def questions_of(label: Label) -> list[str]:
    return ["describe", "digit", "colour"] if label.shape is None else ["describe", "colour", "shape", "count"]


def answer(question: str, label: Label) -> str:
    """The right answer. The shape is named with its count and colour, as in a description."""
    if question == "colour":
        return f"{label.colour.capitalize()}."
    if question == "digit":
        return f"{label.digit}."
    if question == "count":
        return f"{NUMBERS[label.count].capitalize()}."
    if label.shape is None:
        return f"I see the digit {label.digit} in {label.colour}."
    several = label.count > 1
    article = "an" if label.colour[0] in "aeiou" else "a"
    return f"I see {NUMBERS[label.count] if several else article} {label.colour} {label.shape}{'s' if several else ''}."


def phrasing(question: str, r: random.Random, held: bool = False) -> str:
    """One of the phrasings; in training, also with words of the same meaning, without its mark and in small letters."""
    known, held_out = PHRASINGS[question]
    if held:
        return r.choice(held_out)
    text = varied = r.choice(known)
    for words in SYNONYMS:
        found = next((word for word in words if word in text), None)
        if found and r.random() < 0.5:
            varied = varied.replace(found, r.choice(words))
    if varied not in held_out:
        text = varied
    if r.random() < 0.15:
        text = text.rstrip("?.")
    if r.random() < 0.2:
        text = text[:1].lower() + text[1:]
    return text
