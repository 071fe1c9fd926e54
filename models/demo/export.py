"""Writes the trained model as one GGUF file (version 3, Q8_0) for llama.cpp: weights, vocabulary, chat template, facts.

    python export.py --dir /somewhere/outside --out demo.gguf

The format is small enough to write by hand: a header, key-value pairs, tensor descriptions, then aligned data.
"""

from __future__ import annotations

import argparse
import struct
from pathlib import Path

import numpy as np
import torch

import render
from model import Config
from tokenizer import CONTROL, USER_DEFINED, Tokenizer

ALIGNMENT = 32
U32, F32, BOOL, STRING, ARRAY = 4, 6, 7, 8, 9
INT32 = 5
TYPE_F32, TYPE_F16, TYPE_Q8_0 = 0, 1, 8
TOKEN_NORMAL, TOKEN_CONTROL, TOKEN_USER_DEFINED = 1, 3, 4
FILE_TYPE = {TYPE_F16: 1, TYPE_Q8_0: 7}


def _string(text: str) -> bytes:
    raw = text.encode("utf-8")
    return struct.pack("<Q", len(raw)) + raw


def _value(value) -> tuple[int, bytes]:
    """A GGUF type number and the value's bytes; the Python type decides."""
    if isinstance(value, bool):
        return BOOL, struct.pack("<?", value)
    if isinstance(value, int):
        return U32, struct.pack("<I", value)
    if isinstance(value, float):
        return F32, struct.pack("<f", value)
    if isinstance(value, str):
        return STRING, _string(value)
    if isinstance(value[0], int):
        return ARRAY, struct.pack("<IQ", INT32, len(value)) + struct.pack(f"<{len(value)}i", *value)
    return ARRAY, struct.pack("<IQ", STRING, len(value)) + b"".join(map(_string, value))


def q8_0(matrix: np.ndarray) -> bytes:
    """Blocks of 32 weights: one float16 scale, 32 signed bytes."""
    blocks = matrix.reshape(-1, 32)
    scale = (np.abs(blocks).max(axis=1, keepdims=True) / 127).astype(np.float32)
    inverse = np.divide(1, scale, out=np.zeros_like(scale), where=scale > 0)
    out = np.zeros(len(blocks), dtype=[("scale", "<f2"), ("weights", "i1", 32)])
    out["scale"] = scale[:, 0].astype(np.float16)
    out["weights"] = np.rint(blocks * inverse).astype(np.int8)
    return out.tobytes()


def _encode(tensor: torch.Tensor, wanted: int) -> tuple[int, bytes]:
    array = tensor.detach().float().numpy()
    if array.ndim == 1:
        return TYPE_F32, array.astype("<f4").tobytes()
    return wanted, q8_0(array) if wanted == TYPE_Q8_0 else array.astype("<f2").tobytes()


# llama.cpp's names for the parts of a layer, and ours.
PARTS = {
    "attn_norm": "attention_norm",
    "attn_q": "q",
    "attn_k": "k",
    "attn_v": "v",
    "attn_output": "out",
    "attn_q_norm": "q_norm",
    "attn_k_norm": "k_norm",
    "ffn_norm": "mlp_norm",
    "ffn_gate": "gate",
    "ffn_up": "up",
    "ffn_down": "down",
}


def tensors(state: dict[str, torch.Tensor], c: Config) -> dict[str, torch.Tensor]:
    """Our weights under llama.cpp's names."""
    named = {"token_embd.weight": state["embedding.weight"], "output_norm.weight": state["norm.weight"], "output.weight": state["head.weight"]}
    for i in range(c.layers):
        for theirs, ours in PARTS.items():
            named[f"blk.{i}.{theirs}.weight"] = state[f"blocks.{i}.{ours}.weight"]
    return named


def metadata(c: Config, tok: Tokenizer, wanted: int) -> dict:
    types = [TOKEN_NORMAL] * tok.first_special + [TOKEN_USER_DEFINED] * len(USER_DEFINED) + [TOKEN_CONTROL] * len(CONTROL)
    return {
        "general.architecture": "qwen3",
        "general.name": "Truewire demo",
        "general.description": "A 3-million-parameter demo of streaming, tools, reasoning and JSON. It knows nothing.",
        "general.size_label": "3M",
        "general.file_type": FILE_TYPE[wanted],
        "general.quantization_version": 2,
        "general.alignment": ALIGNMENT,
        "qwen3.block_count": c.layers,
        "qwen3.context_length": c.context,
        "qwen3.embedding_length": c.width,
        "qwen3.feed_forward_length": c.hidden,
        "qwen3.attention.head_count": c.heads,
        "qwen3.attention.head_count_kv": c.heads,
        "qwen3.attention.key_length": c.head_size,
        "qwen3.attention.value_length": c.head_size,
        "qwen3.attention.layer_norm_rms_epsilon": c.epsilon,
        "qwen3.rope.freq_base": c.rope_base,
        "qwen3.vocab_size": c.vocabulary,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen2",
        "tokenizer.ggml.tokens": tok.tokens,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": [" ".join(m) for m in tok.merges],
        "tokenizer.ggml.bos_token_id": tok.special["<|endoftext|>"],
        "tokenizer.ggml.eos_token_id": tok.special["<|im_end|>"],
        "tokenizer.ggml.eot_token_id": tok.special["<|im_end|>"],
        "tokenizer.ggml.padding_token_id": tok.special["<|endoftext|>"],
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": render.TEMPLATE_TEXT,
    }


def write(path: Path, state: dict[str, torch.Tensor], c: Config, tok: Tokenizer, wanted: int = TYPE_Q8_0) -> None:
    pairs, named = metadata(c, tok, wanted), tensors(state, c)
    head = [struct.pack("<4sIQQ", b"GGUF", 3, len(named), len(pairs))]
    for key, value in pairs.items():
        kind, raw = _value(value)
        head.append(_string(key) + struct.pack("<I", kind) + raw)
    body, offset = [], 0
    for name, tensor in named.items():
        kind, raw = _encode(tensor, wanted)
        shape = tuple(reversed(tensor.shape))  # GGUF counts from the fastest dimension
        head.append(_string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset))
        raw += b"\0" * (-len(raw) % ALIGNMENT)
        body.append(raw)
        offset += len(raw)
    start = b"".join(head)
    path.write_bytes(start + b"\0" * (-len(start) % ALIGNMENT) + b"".join(body))


def main() -> None:
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--dir", type=Path, required=True, help="where train.py keeps checkpoint.pt and tokenizer.json")
    args.add_argument("--with", type=Path, dest="earlier", help="an earlier checkpoint of the same run: the mean of the two is written")
    args.add_argument("--out", type=Path, default=Path(__file__).parent / "demo.gguf")
    args.add_argument("--f16", action="store_true", help="16-bit weights instead of Q8_0")
    options = args.parse_args()
    saved = torch.load(options.dir / "checkpoint.pt", weights_only=False)
    tok = Tokenizer.load(options.dir / "tokenizer.json")
    state = saved["average"]
    if options.earlier:
        other = torch.load(options.earlier, weights_only=False)["average"]
        state = {name: 0.5 * other[name] + 0.5 * tensor for name, tensor in state.items()}
    write(options.out, state, Config(**saved["config"]), tok, TYPE_F16 if options.f16 else TYPE_Q8_0)
    print(f"{options.out}: {options.out.stat().st_size / 1e6:.2f} MB, step {saved['step']}, {saved['tokens'] / 1e6:.1f}M tokens")


if __name__ == "__main__":
    main()
