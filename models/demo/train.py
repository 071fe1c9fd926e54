"""Trains the demo model on a CPU, from nothing, on conversations that data.py makes up as training goes.

    python train.py --dir /somewhere/outside            start, or go on from the last checkpoint there
    python train.py --dir … --minutes 60                the learning rate falls to zero in the course of these minutes

The folder holds tokenizer.json, checkpoint.pt (weights, averaged weights, optimisers, step, time) and curve.tsv.
Two things differ from the usual recipe, both for the sake of little compute: the blocks' matrices are trained with
Muon (orthogonalised momentum), which needs about half the steps of Adam here; and a batch is made of conversations of
nearly the same length instead of packed ones, so that each starts at position 0 as it will in use; shorter ones fill what room is left.
"""

from __future__ import annotations

import argparse
import bisect
import math
import random
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.multiprocessing as mp
import torch.nn.functional as F

import data
from model import Config, Model, complete
from render import render, segments
from tokenizer import Tokenizer, train as train_tokenizer
from world import World

VOCABULARY, SPACED_WORDS = 1024, 110
PROMPT_WEIGHT = 0.08  # of the loss on what the model only reads: at first a little, it teaches copying early,
PROMPT_STEPS = 550  # then nothing: most of what is left to learn there is noise, the random strings themselves
MICRO_TOKENS = 1280  # a step is two batches of about so many tokens, one for each process
POOL = 1000  # conversations sorted by length together
DRILL_STEPS = 250
WARMUP = 40
LR_MATRIX, LR_OTHER = 0.02, 0.004
AVERAGE = 0.99  # exponential average of the weights: what is evaluated and exported


# ------------------------------------------------------------------------------------------------------------------ data


def example(w: World, tok: Tokenizer, step: int) -> tuple[np.ndarray, np.ndarray]:
    """Token ids of one conversation and the loss weight of each."""
    c = data.drill(w) if w.chance(0.6 if step < DRILL_STEPS else 0.03) else data.conversation(w)
    text = render(c.messages, c.tools, c.think)
    prompt_weight = PROMPT_WEIGHT if step < PROMPT_STEPS else 0.0
    ids: list[int] = []
    weights: list[float] = []
    for piece, own in segments(text):
        part = tok.encode(piece)
        ids += part
        weights += [1.0 if own else prompt_weight] * len(part)
    return np.array(ids, np.int32), np.array(weights, np.float32)


Rows = tuple[np.ndarray, np.ndarray]  # ids and weights of conversations of about one length, [rows, length]


def batches(w: World, tok: Tokenizer, step: int) -> list[list[Rows]]:
    """A pool of conversations cut into batches: rows of nearly one length, and shorter ones for what room they leave."""
    pool = sorted((example(w, tok, step) for _ in range(POOL)), key=lambda e: len(e[0]))
    lengths = [len(ids) for ids, _ in pool]
    out = []
    while pool:
        batch, room = [], MICRO_TOKENS
        while fitting := bisect.bisect_right(lengths, room):
            width = lengths[fitting - 1]
            first = max(0, fitting - room // width)
            batch.append(_rows(pool[first:fitting], width))
            del pool[first:fitting], lengths[first:fitting]
            room -= batch[-1][0].size
        if not batch:
            break  # what is left is longer than a batch
        out.append(batch)
    w.rng.shuffle(out)
    return out


def _rows(examples: list[Rows], width: int) -> Rows:
    ids = np.zeros((len(examples), width), np.int64)
    weights = np.zeros((len(examples), width), np.float32)
    for row, (i, l) in enumerate(examples):
        ids[row, : len(i)], weights[row, : len(i)] = i, l
    return ids, weights


def feed(queue: mp.Queue, folder: Path, seed: int, step: mp.Value) -> None:
    """The generator's process: it fills the queue as fast as training empties it."""
    torch.set_num_threads(1)
    tok = Tokenizer.load(folder / "tokenizer.json")
    w = World(random.Random(seed), pieces=tok.letter_pieces())
    while True:
        for batch in batches(w, tok, step.value):
            queue.put(batch)


def make_tokenizer(folder: Path) -> Tokenizer:
    path = folder / "tokenizer.json"
    if not path.exists():
        w = World(random.Random(1))
        made = (data.conversation(w) for _ in range(12_000))
        train_tokenizer([render(c.messages, c.tools, c.think) for c in made], VOCABULARY, SPACED_WORDS).save(path)
    return Tokenizer.load(path)


# ------------------------------------------------------------------------------------------------------------- optimiser


def orthogonal(g: torch.Tensor, rounds: int = 5) -> torch.Tensor:
    """The nearest matrix with all singular values near 1, by a Newton-Schulz iteration (quintic)."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g / (g.norm() + 1e-7)
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    for _ in range(rounds):
        s = x @ x.T
        x = a * x + (b * s + c * s @ s) @ x
    return x.T if tall else x


class Muon(torch.optim.Optimizer):
    def __init__(self, params, lr: float, momentum: float = 0.95, decay: float = 0.01):
        super().__init__(params, {"lr": lr, "momentum": momentum, "decay": decay})

    @torch.no_grad()
    def step(self) -> None:
        """Updates the matrices that have a gradient; the other process sees to the rest."""
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                m = self.momentum_of(p).lerp_(p.grad, 1 - group["momentum"])
                update = orthogonal(p.grad.lerp(m, group["momentum"]))
                p.mul_(1 - group["lr"] * group["decay"])
                p.add_(update, alpha=-group["lr"] * max(1.0, p.shape[0] / p.shape[1]) ** 0.5)

    def momentum_of(self, p: torch.Tensor) -> torch.Tensor:
        state = self.state[p]
        if not state:
            state["m"] = torch.zeros_like(p)
        return state["m"]


def loss_of(model: Model, micro: list[Rows]) -> tuple[torch.Tensor, torch.Tensor]:
    """Weighted sum of token losses, and the plain mean over the model's own tokens (what the curve shows)."""
    following = torch.cat([F.pad(torch.from_numpy(ids)[:, 1:], (0, 1)).flatten() for ids, _ in micro])
    w = torch.cat([F.pad(torch.from_numpy(weights)[:, 1:], (0, 1)).flatten() for _, weights in micro])
    tokens = torch.cat([torch.from_numpy(ids).flatten() for ids, _ in micro])
    hidden = model.hidden(F.pad(tokens, (0, MICRO_TOKENS - len(tokens))), [ids.shape for ids, _ in micro])
    counted = w.nonzero()[:, 0]
    each = F.cross_entropy(model.logits(hidden[counted]), following[counted], reduction="none")
    w = w[counted]
    return (each * w).sum(), each.detach()[w == 1].mean()


def gradients(model: Model, micro: list[Rows], total: float) -> float:
    """Adds one batch's share of the step's gradients to the parameters; returns the mean loss on the model's own tokens."""
    loss, own = loss_of(model, micro)
    (loss / total).backward()
    return float(own)


@dataclass
class Exchange:
    """What the two processes pass each other, in shared memory: each one's gradients of what the other updates."""

    found: list[torch.Tensor]  # by the helper, for the main process
    given: list[torch.Tensor]  # by the main process, for the helper
    momentum: list[torch.Tensor]  # of the helper's matrices


def shared_out(model: Model) -> tuple[list[torch.nn.Parameter], list[torch.nn.Parameter]]:
    """What the main process updates, and what the helper does: every other matrix, since orthogonalising is dear."""
    theirs = model.matrices()[::2]
    known = {id(p) for p in theirs}
    return [p for p in model.parameters() if id(p) not in known], theirs


def help_out(model: Model, shared: Exchange, tasks: mp.Queue, done: mp.Queue, fused: bool) -> None:
    """The second process: gradients of the other half of each step, and the update of half of the matrices.

    Two processes of one thread that meet twice a step lose far less on a busy machine than two threads that meet in
    every matrix product.
    """
    torch.set_num_threads(1)
    if fused:
        model.compile()
    mains, mine = shared_out(model)
    muon = Muon(mine, LR_MATRIX)
    for p, m in zip(mine, shared.momentum):
        muon.state[p]["m"] = m
    while True:
        micro, total = tasks.get()
        own = gradients(model, micro, total)
        for p, out in zip(mains, shared.found):
            out.copy_(p.grad)
        done.put(own)
        muon.param_groups[0]["lr"] = tasks.get()
        for p, other in zip(mine, shared.given):
            p.grad.add_(other)
        muon.step()
        model.zero_grad(set_to_none=True)
        done.put(None)


# -------------------------------------------------------------------------------------------------------------- the loop


class Run:
    """Weights, their average, optimisers and the clock: all that a checkpoint must hold."""

    def __init__(self, folder: Path, config: Config):
        self.folder = folder
        self.model = Model(config).share_memory()
        self.average = Model(config)
        matrices = {id(p) for p in self.model.matrices()}
        self.muon = Muon(self.model.matrices(), LR_MATRIX)
        others = [p for p in self.model.parameters() if id(p) not in matrices]
        self.adam = torch.optim.AdamW(others, LR_OTHER, betas=(0.9, 0.98), weight_decay=0.0)
        self.step, self.seconds, self.tokens = 0, 0.0, 0
        path = folder / "checkpoint.pt"
        if path.exists():
            self._load(torch.load(path, weights_only=False))
        else:
            self.average.load_state_dict(self.model.state_dict())

    def _load(self, state: dict) -> None:
        self.model.load_state_dict(state["model"])
        self.average.load_state_dict(state["average"])
        self.muon.load_state_dict(state["muon"])
        self.adam.load_state_dict(state["adam"])
        self.step, self.seconds, self.tokens = state["step"], state["seconds"], state["tokens"]

    def save(self) -> None:
        state = {
            "model": self.model.state_dict(),
            "average": self.average.state_dict(),
            "muon": self.muon.state_dict(),
            "adam": self.adam.state_dict(),
            "config": self.model.c.to_dict(),
            "step": self.step,
            "seconds": self.seconds,
            "tokens": self.tokens,
        }
        torch.save(state, self.folder / "checkpoint.tmp")
        (self.folder / "checkpoint.tmp").replace(self.folder / "checkpoint.pt")

    def rate(self, left: float, total: float, highest: float) -> float:
        """Warm up and stay; where a time was given, fall to nothing in the course of it."""
        return min(1.0, (self.step + 1) / WARMUP) * highest * (left / total if total else 1.0)

    def start_helper(self, fused: bool) -> None:
        self.mine, self.theirs = shared_out(self.model)
        buffers = lambda parameters: [torch.zeros_like(p).share_memory_() for p in parameters]  # noqa: E731
        momentum = [self.muon.momentum_of(p).share_memory_() for p in self.theirs]
        self.shared = Exchange(buffers(self.mine), buffers(self.theirs), momentum)
        self.tasks, self.done = mp.Queue(), mp.Queue()
        mp.Process(target=help_out, args=(self.model, self.shared, self.tasks, self.done, fused), daemon=True).start()
        if fused:
            self.model.compile()

    def learn(self, mine: list[Rows], theirs: list[Rows], rate: float) -> float:
        total = float(sum(weights[:, 1:].sum() for _, weights in mine + theirs))
        self.tasks.put((theirs, total))
        own = gradients(self.model, mine, total)
        for p, out in zip(self.theirs, self.shared.given):
            out.copy_(p.grad)
            p.grad = None
        self.tasks.put(LR_MATRIX * rate)
        own = (own + self.done.get()) / 2
        for p, other in zip(self.mine, self.shared.found):
            p.grad.add_(other)
        torch.nn.utils.clip_grad_norm_(self.adam.param_groups[0]["params"], 1.0)
        self.muon.param_groups[0]["lr"] = LR_MATRIX * rate
        self.adam.param_groups[0]["lr"] = LR_OTHER * rate
        self.muon.step()
        self.adam.step()
        self.model.zero_grad(set_to_none=True)
        self.done.get()
        self._follow()
        self.step += 1
        self.tokens += sum(ids.size for ids, _ in mine + theirs)
        return own

    @torch.no_grad()
    def _follow(self) -> None:
        keep = min(AVERAGE, self.step / (self.step + 10))
        torch._foreach_lerp_(list(self.average.parameters()), list(self.model.parameters()), 1 - keep)


def show(model: Model, tok: Tokenizer, count: int = 4) -> None:
    """A few answers of the averaged model to training-style requests, for the log."""
    w = World(random.Random(), pieces=tok.letter_pieces())
    for _ in range(count):
        c = data.conversation(w)
        last = next(i for i, m in reversed(list(enumerate(c.messages))) if m["role"] == "assistant")
        text = render(c.messages[:last], c.tools, c.think, prompt=True)
        written = tok.decode(complete(model, tok.encode(text), tok.special["<|im_end|>"], 80))
        wanted = render(c.messages[last : last + 1])
        print(f"  > {c.messages[last - 1]['content']!r}\n  = {written!r}\n  ! {wanted[22:-11]!r}", flush=True)


def main() -> None:
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--dir", type=Path, required=True)
    args.add_argument("--minutes", type=float, default=0, help="cool down for so many minutes, from now on, and end; 0: never end")
    args.add_argument("--rate", type=float, default=1.0, help="share of the full learning rate to begin with: to go on with a cooling that was cut")
    args.add_argument("--compile", action="store_true")
    args.add_argument("--overfit", action="store_true", help="learn one batch by heart: a check of the loop")
    options = args.parse_args()
    mp.set_start_method("spawn")
    torch.set_num_threads(1)
    options.dir.mkdir(parents=True, exist_ok=True)
    tok = make_tokenizer(options.dir)
    torch.manual_seed(1)
    run = Run(options.dir, Config(vocabulary=tok.size))
    print(f"{sum(p.numel() for p in run.model.parameters()):,} parameters, step {run.step}", flush=True)
    queue: mp.Queue = mp.Queue(64)
    step = mp.Value("i", run.step)
    mp.Process(target=feed, args=(queue, options.dir, 1000 + run.step, step), daemon=True).start()
    loop(run, tok, queue, step, options)


def loop(run: Run, tok: Tokenizer, queue: mp.Queue, step, options) -> None:
    run.start_helper(options.compile)
    started = last_save = time.time()
    before, since, smooth = run.seconds, run.tokens, None
    micros: list = []
    total = options.minutes * 60
    while True:
        now = time.time()
        left = total - (now - started) if total else math.inf
        if left <= 0:
            break
        if not (options.overfit and micros):
            micros = [queue.get(timeout=120), queue.get(timeout=120)]  # the generator may have died
        shown = run.learn(micros[0], micros[1], run.rate(left, total, options.rate))
        smooth = shown if smooth is None else 0.95 * smooth + 0.05 * shown
        run.seconds = before + time.time() - started
        step.value = run.step
        if run.step % 25 == 0:
            speed = (run.tokens - since) / (time.time() - started)
            print(f"step {run.step} loss {smooth:.4f} {run.tokens / 1e6:.2f}M tokens {run.seconds / 60:.1f} min {speed:.0f} tok/s", flush=True)
            with open(run.folder / "curve.tsv", "a") as curve:
                curve.write(f"{run.step}\t{run.tokens}\t{run.seconds:.0f}\t{smooth:.4f}\n")
        if time.time() - last_save > 180:
            run.save()
            show(run.average, tok, 1)
            last_save = time.time()
    run.save()
    show(run.average, tok, 6)


if __name__ == "__main__":
    main()
