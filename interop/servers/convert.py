"""Writes the weights, the tokenizer and the chat template of a GGUF file as a folder of Hugging Face's form: convert.py FILE FOLDER.

Transformers reads GGUF and refuses to save what it has read; and it takes the size of a head from the architecture, not from the file.
"""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

file, folder = map(Path, sys.argv[1:])
model = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
folder.mkdir(parents=True, exist_ok=True)
tokenizer.save_pretrained(folder)
model.generation_config.save_pretrained(folder)
config = model.config.to_dict()
config.pop("quantization_config", None)
config["architectures"] = [type(model).__name__]
weights = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
if "model.layers.0.self_attn.q_norm.weight" in weights:
    config["head_dim"] = len(weights["model.layers.0.self_attn.q_norm.weight"])
if config["tie_word_embeddings"]:
    del weights["lm_head.weight"]
save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
(folder / "config.json").write_text(json.dumps(config, indent=1))
