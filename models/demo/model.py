"""The network: a qwen3 block stack (RMSNorm, rotary attention with normalised queries and keys, SwiGLU), nothing more.

It is written so that llama.cpp's `qwen3` architecture computes the same thing from the same weights; export.py names them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass
class Config:
    vocabulary: int = 1024
    width: int = 192
    layers: int = 6
    heads: int = 6
    head_size: int = 32
    hidden: int = 512
    rope_base: float = 10000.0
    epsilon: float = 1e-6
    context: int = 2048

    def to_dict(self) -> dict:
        return asdict(self)


Shapes = list[tuple[int, int]]  # a flat list of tokens holds these blocks of (rows, length), one after the other


class RMSNorm(nn.Module):
    def __init__(self, size: int, epsilon: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, (x.shape[-1],), self.weight, self.epsilon)


def rotary(config: Config, length: int) -> tuple[Tensor, Tensor]:
    """cos and sin for each position; halves are paired (NEOX style), as llama.cpp does for qwen3."""
    steps = torch.arange(0, config.head_size, 2, dtype=torch.float32) / config.head_size
    angles = torch.arange(length, dtype=torch.float32)[:, None] * config.rope_base**-steps
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


class Block(nn.Module):
    """Attention and feed-forward, cut into what looks at one token at a time (`before`, `after`) and what does not.

    The two halves work on a flat list of tokens. Training pads that list to one length, so that each half is compiled
    once for all batch shapes; on a CPU the fused element-wise work is worth a factor of two.
    """

    def __init__(self, c: Config):
        super().__init__()
        self.c = c
        self.attention_norm = RMSNorm(c.width, c.epsilon)
        self.q = nn.Linear(c.width, c.heads * c.head_size, bias=False)
        self.k = nn.Linear(c.width, c.heads * c.head_size, bias=False)
        self.v = nn.Linear(c.width, c.heads * c.head_size, bias=False)
        self.q_norm = RMSNorm(c.head_size, c.epsilon)
        self.k_norm = RMSNorm(c.head_size, c.epsilon)
        self.out = nn.Linear(c.heads * c.head_size, c.width, bias=False)
        self.mlp_norm = RMSNorm(c.width, c.epsilon)
        self.gate = nn.Linear(c.width, c.hidden, bias=False)
        self.up = nn.Linear(c.width, c.hidden, bias=False)
        self.down = nn.Linear(c.hidden, c.width, bias=False)

    def before(self, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h = self.attention_norm(x)
        heads = (x.shape[0], self.c.heads, self.c.head_size)
        q = rotate(self.q_norm(self.q(h).view(heads)), cos, sin)
        k = rotate(self.k_norm(self.k(h).view(heads)), cos, sin)
        return q, k, self.v(h).view(heads)

    def after(self, x: Tensor, attended: Tensor) -> Tensor:
        x = x + self.out(attended)
        h = self.mlp_norm(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


def attend(q: Tensor, k: Tensor, v: Tensor, shapes: Shapes) -> Tensor:
    """Causal attention within each row; tokens beyond the rows are padding and get zeros."""
    out, start = [], 0
    for batch, length in shapes:
        part = slice(start, start := start + batch * length)
        a, b, c = (t[part].view(batch, length, *t.shape[1:]).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(a, b, c, is_causal=True)
        out.append(y.transpose(1, 2).reshape(batch * length, -1))
    return F.pad(torch.cat(out), (0, 0, 0, q.shape[0] - start))


class Model(nn.Module):
    def __init__(self, c: Config):
        super().__init__()
        self.c = c
        self.embedding = nn.Embedding(c.vocabulary, c.width)
        self.blocks = nn.ModuleList(Block(c) for _ in range(c.layers))
        self.norm = RMSNorm(c.width, c.epsilon)
        self.head = nn.Linear(c.width, c.vocabulary, bias=False)
        cos, sin = rotary(c, c.context)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        self.before, self.after = Block.before, Block.after
        self._start()

    def _start(self) -> None:
        """Small random weights; what a block adds starts at zero, so that depth costs nothing in the first steps."""
        nn.init.normal_(self.embedding.weight, std=0.5)
        nn.init.zeros_(self.head.weight)
        for block in self.blocks:
            nn.init.zeros_(block.out.weight)
            nn.init.zeros_(block.down.weight)

    def compile(self) -> None:
        """Fuse the per-token halves; the shapes must then stay the same from call to call."""
        self.before = torch.compile(Block.before, dynamic=False)
        self.after = torch.compile(Block.after, dynamic=False)

    def hidden(self, tokens: Tensor, shapes: Shapes) -> Tensor:
        """The last block's output for a flat list of tokens, which begins with rows of these shapes."""
        places = torch.cat([torch.arange(length).repeat(batch) for batch, length in shapes])
        places = F.pad(places, (0, tokens.shape[0] - places.shape[0]))
        cos, sin = self.cos[places][:, None], self.sin[places][:, None]
        x = self.embedding(tokens)
        for block in self.blocks:
            q, k, v = self.before(block, x, cos, sin)
            x = self.after(block, x, attend(q, k, v, shapes))
        return x

    def logits(self, hidden: Tensor) -> Tensor:
        return self.head(self.norm(hidden))

    def forward(self, ids: Tensor) -> Tensor:
        batch, length = ids.shape
        return self.logits(self.hidden(ids.flatten(), [(batch, length)])).view(batch, length, -1)

    def matrices(self) -> list[nn.Parameter]:
        """The weights inside the blocks that have rows and columns: what the Muon optimiser takes."""
        return [p for p in self.blocks.parameters() if p.ndim == 2]


@torch.no_grad()
def complete(model: Model, ids: list[int], stop: int, limit: int = 200) -> list[int]:
    """Greedy continuation up to and without the stop token. No cache: fine for a look, too slow for anything else."""
    written: list[int] = []
    while len(written) < limit and len(ids) + len(written) < model.c.context:
        logits = model(torch.tensor([ids + written]))[0, -1]
        token = int(logits.argmax())
        if token == stop:
            break
        written.append(token)
    return written
