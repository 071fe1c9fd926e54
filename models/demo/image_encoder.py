"""The image encoder: a vision transformer and a projector of two layers, as llama.cpp computes them for LLaVA (`mlp`).

Source: llama.cpp v0.5.0, tools/mtmd/models/llava.cpp. The output of the last layer is used (`clip.vision.feature_layer`), and there is no
class token, so each patch of the picture becomes one row for the language model.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class EncoderConfig:
    size: int = 60
    patch: int = 10
    width: int = 96
    heads: int = 3
    hidden: int = 256
    layers: int = 3
    projector: int = 256
    rows: int = 192  # the width of the language model
    epsilon: float = 1e-5


class EncoderBlock(nn.Module):
    def __init__(self, c: EncoderConfig):
        super().__init__()
        self.heads = c.heads
        self.ln1 = nn.LayerNorm(c.width, c.epsilon)
        self.attn_q = nn.Linear(c.width, c.width)
        self.attn_k = nn.Linear(c.width, c.width)
        self.attn_v = nn.Linear(c.width, c.width)
        self.attn_out = nn.Linear(c.width, c.width)
        self.ln2 = nn.LayerNorm(c.width, c.epsilon)
        self.ffn_up = nn.Linear(c.width, c.hidden)
        self.ffn_down = nn.Linear(c.hidden, c.width)

    def forward(self, x: Tensor) -> Tensor:
        h = self.ln1(x)
        q, k, v = (part(h).unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (self.attn_q, self.attn_k, self.attn_v))
        x = x + self.attn_out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.ffn_down(F.gelu(self.ffn_up(self.ln2(x)), approximate="tanh"))


class Encoder(nn.Module):
    def __init__(self, c: EncoderConfig):
        super().__init__()
        self.c = c
        self.patch_embd = nn.Conv2d(3, c.width, c.patch, c.patch, bias=False)
        self.position_embd = nn.Parameter(0.02 * torch.randn((c.size // c.patch) ** 2, c.width))
        self.blocks = nn.ModuleList(EncoderBlock(c) for _ in range(c.layers))
        self.post_ln = nn.LayerNorm(c.width, c.epsilon)
        self.mm_0 = nn.Linear(c.width, c.projector)
        self.mm_2 = nn.Linear(c.projector, c.rows)

    def features(self, pixels: Tensor) -> Tensor:
        """`pixels`: pictures of (3, size, size), from -1 to 1."""
        x = self.patch_embd(pixels).flatten(2).transpose(1, 2) + self.position_embd
        for block in self.blocks:
            x = block(x)
        return self.post_ln(x)

    def project(self, features: Tensor) -> Tensor:
        return self.mm_2(F.gelu(self.mm_0(features), approximate="tanh"))

    def forward(self, pixels: Tensor) -> Tensor:
        """The rows of each picture."""
        return self.project(self.features(pixels))


class Heads(nn.Module):
    """What the features are asked in training only: whether there is a digit, the colour, the shape, the count and the digit."""

    def __init__(self, c: EncoderConfig, sizes: tuple[int, ...]):
        super().__init__()
        self.sizes = sizes
        self.of_mean = nn.Linear(c.width, sum(sizes))
        self.of_row = nn.Linear(c.width, sum(sizes))

    def loss(self, features: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """The loss, and the share of right answers to each. `labels`: (pictures, outputs), -1 where there is none.

        The mean of the rows must know the answers, and four rows by themselves: the language model sees rows.
        """
        chosen = features[:, torch.randperm(features.shape[1])[:4]]
        mean, rows = self.of_mean(features.mean(1)).split(self.sizes, -1), self.of_row(chosen).split(self.sizes, -1)
        losses, rights = [], []
        for whole, each, wanted in zip(mean, rows, labels.T):
            losses.append(F.cross_entropy(whole, wanted, ignore_index=-1))
            losses.append(F.cross_entropy(each.flatten(0, 1), wanted.repeat_interleave(4), ignore_index=-1))
            rights.append((each[:, 0].argmax(-1) == wanted)[wanted >= 0].float().mean())
        return torch.stack(losses).sum() / 2, torch.stack(rights)
