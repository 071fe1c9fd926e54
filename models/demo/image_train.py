"""Trains the image encoder of the demo model on a CPU, from nothing. The language model's weights do not change.

    python image_train.py --dir /somewhere/outside                  all three steps, 25, 18 and 15 minutes
    python image_train.py --dir … --only rows --minutes 10          one step goes on from what is in the folder
    python image_train.py --dir … --only join --with earlier.pt     writes the mean of the result and an earlier encoder.pt

1. `features`: the encoder learns alone, by linear outputs on its features, which is cheap.
2. `rows`: no pictures. Each fact (a colour, a shape, a count, a digit) gets two vectors, and each place of a row one; their sums are the
   rows of a picture. They learn to make the frozen model generate the right answers: the loss of the answers' tokens goes back through the
   model.
3. `join`: the encoder's projector learns to make these rows of its features; then all of the encoder learns from the answers' loss.

The questions about one picture share its rows: each looks at them, and not at the other questions. The folder holds the pictures and
what is trained. Needs PyTorch, Pillow and gguf.
"""

from __future__ import annotations

import argparse
import random
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import image_model
import image_questions
from image_encoder import Encoder, EncoderConfig, Heads
from image_pictures import COLOURS, MAX_COUNT, SHAPES, Image, Label, fitted, picture
from model import Model
from tokenizer import Tokenizer
from train import Muon

SHARD, HELD = 10_000, 2_000  # pictures in a file
HEADS = (2, len(COLOURS), len(SHAPES), MAX_COUNT, 10)
ROW = -1  # in place of a token

SYSTEMS = ["You are a helpful assistant.", "You are helpful.", "Answer briefly.", "Be friendly."]


# ------------------------------------------------------------------------------------------------------------ pictures


def shard(path: Path, first: int, count: int, held: bool) -> None:
    """Draws pictures to a file. Every fifth is scaled in another way than llama.cpp does it, so that no way of scaling matters."""
    size = EncoderConfig().size
    pixels, labels = np.zeros((count, size, size, 3), np.uint8), np.zeros((count, len(HEADS)), np.int64)
    for at, seed in enumerate(range(first, first + count)):
        image, label = picture(seed, held)
        r = random.Random(seed)
        way = Image.BICUBIC if held or r.random() > 0.2 else r.choice([Image.BILINEAR, Image.LANCZOS, Image.NEAREST])
        pixels[at] = np.asarray(fitted(image, size, way))
        labels[at] = numbers_of(label)
    np.savez(path, X=pixels, Y=labels)


def numbers_of(label: Label) -> list[int]:
    shape = -1 if label.shape is None else SHAPES.index(label.shape)
    return [int(label.shape is None), list(COLOURS).index(label.colour), shape, label.count - 1, -1 if label.digit is None else label.digit]


def label_of(numbers: list[int]) -> Label:
    _, colour, shape, count, digit = numbers
    return Label(list(COLOURS)[colour], None if shape < 0 else SHAPES[shape], count + 1, None if digit < 0 else digit)


def pictures(folder: Path, count: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Pixels and labels for training and for looks at held-out ones; drawn if they are not in the folder yet."""
    jobs = [(folder / f"pool{at}.npz", at * SHARD, SHARD, False) for at in range(count // SHARD)] + [(folder / "held.npz", 0, HELD, True)]
    with ProcessPoolExecutor(2) as workers:
        for job in [workers.submit(shard, *job) for job in jobs if not job[0].exists()]:
            job.result()
    loaded = [np.load(path) for path, *_ in jobs]
    train = [torch.from_numpy(np.concatenate([each[name] for each in loaded[:-1]])) for name in "XY"]
    return *train, *(torch.from_numpy(loaded[-1][name]) for name in "XY")


def pixels_of(images: Tensor) -> Tensor:
    return images.permute(0, 3, 1, 2).float() / 127.5 - 1


def varied(x: Tensor) -> Tensor:
    """Other contrast, brightness, tint and place, and noise."""
    n = x.shape[0]
    x = x * (1 + 0.06 * torch.randn(n, 1, 1, 1)) + 0.04 * torch.randn(n, 1, 1, 1) + 0.02 * torch.randn(n, 3, 1, 1)
    x = x + torch.rand(n, 1, 1, 1) * 0.08 * torch.randn_like(x) * (torch.rand(n, 1, 1, 1) < 0.4)
    return torch.roll(x, random.choices(range(-5, 6), k=2), (2, 3)).clamp(-1, 1)


# ------------------------------------------------------------------------------------------------------- conversations


class Batch:
    """Conversations about pictures as rows, some of which are those of the picture.

    A conversation has a part that all its questions share (number 0) and the questions (1, 2, …), which do not look at each other.
    """

    def __init__(self, tok: Tokenizer, r: random.Random, rows: int):
        self.tok, self.r, self.rows = tok, r, rows
        self.items: list[list[tuple[int, int, int, bool]]] = []  # token, place, part, does the model write it?

    def _turns(self, label: Label, order: list[str], opened: bool) -> list[tuple[str, bool]]:
        """The texts from the first question on, each with whether the model writes it. `opened`: the user's turn has begun."""
        parts: list[tuple[str, bool]] = []
        for question in order:
            head = "" if opened else "\n<|im_start|>user\n"
            text = image_questions.phrasing(question, self.r)
            while not text and not opened:
                text = image_questions.phrasing(question, self.r)
            parts.append((f"{head}{text}<|im_end|>\n<|im_start|>assistant\n", False))
            parts.append((f"{image_questions.answer(question, label)}<|im_end|>", True))
            opened = False
        return parts

    def add(self, label: Label) -> None:
        r, asked = self.r, image_questions.questions_of(label)
        before = ""
        if r.random() < 0.1:
            before += f"<|im_start|>system\n{r.choice(SYSTEMS)}\n<|im_end|>\n"
        if r.random() < 0.08:
            before += "<|im_start|>user\nHello!<|im_end|>\n<|im_start|>assistant\nHello! How can I help you?<|im_end|>\n"
        before += "<|im_start|>user\n"
        item: list[tuple[int, int, int, bool]] = []
        if r.random() < 0.3:  # the text first
            question = "describe" if r.random() < 0.3 else r.choice(asked)
            texts = self._turns(label, [question, r.choice(asked)] if r.random() < 0.3 else [question], True)
            end = texts[0][0].index("<|im_end|>")
            asking = [(texts[0][0][:end], False)] if end > 0 else []
            texts[0:1] = [*asking, ("", False), (texts[0][0][end:], False)]
            self._append(item, 0, [(before, False), *texts], 0)
        else:
            start = self._append(item, 0, [(before, False), ("", False)], 0)
            for part, question in enumerate(asked, 1):
                order = [question, r.choice(asked)] if r.random() < 0.25 else [question]
                self._append(item, start, self._turns(label, order, True), part)
        self.items.append(item)

    def _append(self, item: list, place: int, texts: list[tuple[str, bool]], part: int) -> int:
        for text, written in texts:
            # An empty text is where the picture is, except for a question without one.
            tokens = [ROW] * self.rows if text == "" else self.tok.encode(text)
            for token in tokens:
                item.append((token, place, part, written))
                place += 1
        return place

    def tensors(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Tokens, places, mask, and which tokens the model writes."""
        length = max(map(len, self.items))
        filled = [item + [(0, 0, -1 - at, False) for at in range(length - len(item))] for item in self.items]
        tokens, places, parts, written = (torch.tensor(column) for column in zip(*(zip(*item) for item in filled)))
        same = parts[:, :, None] == parts[:, None, :]
        shared = (parts == 0)[:, None, :] & (parts > 0)[:, :, None]
        causal = torch.ones(length, length, dtype=torch.bool).tril()
        return tokens, places, (same | shared) & causal, written


def answer_loss(model: Model, rows: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """The loss of the answers' tokens, and the share of answers' tokens that are the likeliest."""
    tokens, places, mask, written = batch.tensors()
    x = model.embedding(tokens.clamp(min=0))
    x = x.masked_scatter((tokens == ROW)[..., None], rows.to(x.dtype))
    h = image_model.hidden(model, x, places, mask)
    wanted = written[:, 1:]
    scores = model.logits(h[:, :-1][wanted]).float()
    target = tokens[:, 1:][wanted]
    return F.cross_entropy(scores, target), (scores.argmax(-1) == target).float().mean()


# ------------------------------------------------------------------------------------------------------------ training


class Prompts(nn.Module):
    """The rows of a label, without a picture: sums of vectors of its facts."""

    def __init__(self, rows: int, deviation: float):
        super().__init__()
        self.repeats = rows // 2
        self.base = nn.Parameter(0.5 * deviation * torch.randn(rows, EncoderConfig().rows))
        self.e = nn.ParameterList(nn.Parameter(0.5 * deviation * torch.randn(size + 1, 2, EncoderConfig().rows)) for size in HEADS)

    def forward(self, labels: Tensor) -> Tensor:
        """`labels`: as `numbers_of` gives them; -1 is the last vector."""
        return self.base + sum(each[value] for each, value in zip(self.e, labels.T)).repeat(1, self.repeats, 1)


class Steps:
    """The learning rate of a step by the clock, and a line in the log now and then."""

    def __init__(self, minutes: float, every: int):
        self.minutes, self.every, self.began, self.step = minutes, every, time.time(), 0
        self.mean: Tensor | None = None

    @property
    def done(self) -> float:
        return (time.time() - self.began) / 60 / self.minutes

    @property
    def rate(self) -> float:
        return min(1, (self.step + 1) / 60) * max(0.02, 1 - max(0, self.done - 0.3) / 0.7)

    def end(self, name: str, *values: Tensor) -> bool:
        """Counts the step; whether it is time for a look."""
        now = torch.stack(values).detach()
        self.mean = now if self.mean is None else 0.96 * self.mean + 0.04 * now
        self.step += 1
        if self.step % self.every == 0:
            print(f"{name} {self.step} {self.done:.2f}", " ".join(f"{each:.4f}" for each in self.mean), flush=True)
        return self.step % self.every == 0


class Run:
    def __init__(self, folder: Path):
        self.folder = folder
        self.encoder = Encoder(EncoderConfig())
        self.heads = Heads(self.encoder.c, HEADS)
        self.model, self.tok = image_model.load()
        self.rows = (self.encoder.c.size // self.encoder.c.patch) ** 2
        self.prompts = Prompts(self.rows, self.model.embedding.weight.std().item())
        self.r = random.Random()
        for name in ("encoder", "heads", "prompts"):
            if (path := folder / f"{name}.pt").exists():
                getattr(self, name).load_state_dict(torch.load(path))

    def save(self) -> None:
        for name in ("encoder", "heads", "prompts"):
            torch.save(getattr(self, name).state_dict(), self.folder / f"{name}.pt")

    def batch(self, labels: list[Label]) -> Batch:
        batch = Batch(self.tok, self.r, self.rows)
        for label in labels:
            batch.add(label)
        return batch

    def features(self, minutes: float, x: Tensor, y: Tensor, held_x: Tensor, held_y: Tensor) -> None:
        matrices = [p for p in self.encoder.blocks.parameters() if p.ndim == 2]
        taken = {id(p) for p in matrices}
        others = [p for p in [*self.encoder.parameters(), *self.heads.parameters()] if id(p) not in taken]
        muon, adam = Muon(matrices, 0.01), torch.optim.AdamW(others, 2e-3, weight_decay=0.01, betas=(0.9, 0.98))
        steps = Steps(minutes, 200)
        while steps.done < 1:
            muon.param_groups[0]["lr"], adam.param_groups[0]["lr"] = 0.01 * steps.rate, 2e-3 * steps.rate
            chosen = torch.randint(len(x), (128,))
            with torch.autocast("cpu", torch.bfloat16):
                features = self.encoder.features(varied(pixels_of(x[chosen])))
            loss, right = self.heads.loss(features.float(), y[chosen])
            muon.zero_grad()
            adam.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(others, 1.0)
            muon.step()
            adam.step()
            if steps.end("features", loss):
                with torch.no_grad():
                    held = self.heads.loss(self.encoder.features(pixels_of(held_x[:1000])), held_y[:1000])[1]
                print("  held out", " ".join(f"{each:.3f}" for each in held), flush=True)
                self.save()

    def learn_rows(self, minutes: float, y: Tensor) -> None:
        deviation = self.model.embedding.weight.std().item()
        adam = torch.optim.Adam(self.prompts.parameters(), 1, betas=(0.9, 0.98))
        steps = Steps(minutes, 25)
        while steps.done < 1:
            adam.param_groups[0]["lr"] = 0.04 * deviation * steps.rate
            labels = y[torch.randint(len(y), (12,))]
            rows = self.prompts(labels)
            rows = rows + 0.05 * deviation * torch.randn_like(rows)
            with torch.autocast("cpu", torch.bfloat16):
                loss, right = answer_loss(self.model, rows, self.batch([label_of(each) for each in labels.tolist()]))
            adam.zero_grad()
            loss.backward()
            adam.step()
            if steps.end("rows", loss, right):
                self.save()

    def regress(self, minutes: float, x: Tensor, y: Tensor) -> None:
        """The encoder makes the rows of the labels, and keeps what it knows."""
        weights = [*self.encoder.parameters(), *self.heads.parameters()]
        adam = torch.optim.AdamW(weights, 2e-3, weight_decay=0.01, betas=(0.9, 0.98))
        steps = Steps(minutes, 100)
        while steps.done < 1:
            adam.param_groups[0]["lr"] = 2e-3 * steps.rate
            chosen = torch.randint(len(x), (128,))
            with torch.autocast("cpu", torch.bfloat16):
                features = self.encoder.features(varied(pixels_of(x[chosen])))
                rows = self.encoder.project(features).float()
            with torch.no_grad():
                wanted = self.prompts(y[chosen])
            away = (rows - wanted).square().mean() / wanted.square().mean()
            known, _ = self.heads.loss(features.float(), y[chosen])
            adam.zero_grad()
            (away + 0.1 * known).backward()
            torch.nn.utils.clip_grad_norm_(weights, 1.0)
            adam.step()
            if steps.end("regress", away, known):
                self.save()

    def join(self, minutes: float, x: Tensor, y: Tensor, rate: float = 5e-4) -> None:
        weights = [*self.encoder.parameters(), *self.heads.parameters()]
        adam = torch.optim.AdamW(weights, rate, weight_decay=0.01, betas=(0.9, 0.98))
        steps = Steps(minutes, 25)
        through = 12
        while steps.done < 1:
            adam.param_groups[0]["lr"] = rate * steps.rate
            chosen = torch.randint(len(x), (64,))
            with torch.autocast("cpu", torch.bfloat16):
                features = self.encoder.features(varied(pixels_of(x[chosen])))
                rows = self.encoder.project(features[:through])
                labels = [label_of(each) for each in y[chosen[:through]].tolist()]
                loss, right = answer_loss(self.model, rows, self.batch(labels))
            known, _ = self.heads.loss(features.float(), y[chosen])
            adam.zero_grad()
            (loss + 0.1 * known).backward()
            torch.nn.utils.clip_grad_norm_(weights, 1.0)
            adam.step()
            if steps.end("join", loss, right, known):
                self.save()


def main() -> None:
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--dir", type=Path, required=True)
    args.add_argument("--pictures", type=int, default=80_000)
    args.add_argument("--only", choices=["features", "rows", "regress", "join"])
    args.add_argument("--minutes", type=float, help="of the step that is named by --only")
    args.add_argument("--rate", type=float, default=5e-4, help="the learning rate of the step join")
    args.add_argument("--threads", type=int, default=2)
    args.add_argument("--with", type=Path, dest="earlier")
    args.add_argument("--out", type=Path, default=Path(__file__).parent / "demo.mmproj.gguf")
    options = args.parse_args()
    options.dir.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(options.threads)
    x, y, held_x, held_y = pictures(options.dir, options.pictures)
    run = Run(options.dir)
    for name, minutes in {"features": 25, "rows": 18, "regress": 3, "join": 15}.items():
        if options.only not in (None, name):
            continue
        minutes = options.minutes or minutes
        if name == "features":
            run.features(minutes, x, y, held_x, held_y)
        elif name == "rows":
            run.learn_rows(minutes, y)
        elif name == "regress":
            run.regress(minutes, x, y)
        else:
            run.join(minutes, x, y, options.rate)
        run.save()
    if options.earlier:
        other = torch.load(options.earlier)
        run.encoder.load_state_dict({name: (each + other[name]) / 2 for name, each in run.encoder.state_dict().items()})
    image_model.write(options.out, run.encoder)
    print(f"{options.out}: {options.out.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
