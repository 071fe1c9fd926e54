"""The demo model, frozen, as the file `demo.gguf` has it, and the file of the image encoder for it."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from export import PARTS
from image_encoder import Encoder
from model import Config, Model
from tokenizer import Tokenizer

DEMO = Path(__file__).parent / "demo.gguf"


def load(path: Path = DEMO) -> tuple[Model, Tokenizer]:
    """The model with the weights that are served, which get no gradients, and its tokenizer."""
    reader = gguf.GGUFReader(path)
    weights = {t.name: torch.from_numpy(np.array(gguf.dequantize(t.data, t.tensor_type), dtype=np.float32)) for t in reader.tensors}
    state = {"embedding.weight": weights["token_embd.weight"], "norm.weight": weights["output_norm.weight"], "head.weight": weights["output.weight"]}
    config = Config()
    for i in range(config.layers):
        for theirs, ours in PARTS.items():
            state[f"blocks.{i}.{ours}.weight"] = weights[f"blk.{i}.{theirs}.weight"]
    model = Model(config)
    model.load_state_dict(state)
    model.requires_grad_(False)
    merges = reader.get_field("tokenizer.ggml.merges").contents()
    return model, Tokenizer([tuple(merge.split(" ")) for merge in merges])


def hidden(model: Model, x: Tensor, places: Tensor, mask: Tensor) -> Tensor:
    """The last block's output for rows in place of tokens.

    `x`: (batch, length, width); `places`: the position of each row; `mask`: (batch, length, length), which rows each one may look at.
    """
    batch, length, width = x.shape
    cos, sin = (table[places.flatten()][:, None] for table in (model.cos, model.sin))
    x = x.reshape(-1, width)
    for block in model.blocks:
        q, k, v = (part.view(batch, length, *part.shape[1:]).transpose(1, 2) for part in block.before(x, cos, sin))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None])
        x = block.after(x, y.transpose(1, 2).reshape(batch * length, -1))
    return x.view(batch, length, width)


def write(path: Path, encoder: Encoder) -> None:
    """Writes the encoder as the projector file of a LLaVA model: matrices with 16 bits, the rest with 32."""
    c = encoder.c
    writer = gguf.GGUFWriter(path, "clip")
    writer.add_name("Truewire demo, images")
    writer.add_description("Sees coloured shapes and digits, for the demo model.")
    writer.add_file_type(1)
    writer.add_bool("truewire.lazy", True)  # its process starts with the first image
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_string("clip.projector_type", "mlp")
    writer.add_bool("clip.use_gelu", True)
    for key, value in {
        "image_size": c.size,
        "patch_size": c.patch,
        "embedding_length": c.width,
        "feed_forward_length": c.hidden,
        "block_count": c.layers,
        "projection_dim": c.rows,
        "attention.head_count": c.heads,
    }.items():
        writer.add_uint32(f"clip.vision.{key}", value)
    writer.add_float32("clip.vision.attention.layer_norm_epsilon", c.epsilon)
    writer.add_array("clip.vision.image_mean", [0.5, 0.5, 0.5])
    writer.add_array("clip.vision.image_std", [0.5, 0.5, 0.5])
    writer.add_array("clip.vision.feature_layer", [c.layers])
    for name, tensor in encoder.state_dict().items():
        theirs = name.replace("mm_", "mm.") if name.startswith("mm_") else f"v.{name.replace('blocks.', 'blk.')}"
        theirs += ".weight" if name == "position_embd" else ""
        array = tensor.float().numpy()
        writer.add_tensor(theirs, array if array.ndim == 1 or name == "position_embd" else array.astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
