"""Writes the weights, the tokenizer and the chat template of a GGUF file as a folder of Hugging Face's form: convert.py FILE FOLDER.

Transformers reads GGUF and refuses to save what it has read; it takes the size of a head from the architecture, not from the file; and it
splits the tokens that llama.cpp finds in any text (user-defined ones): without them, the demo model's tools were twice as many tokens.
"""

import json
import re
import sys
from pathlib import Path

import torch
from gguf import GGUFReader
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

USER_DEFINED = 4
file, folder = map(Path, sys.argv[1:])
model = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
folder.mkdir(parents=True, exist_ok=True)
tokenizer.save_pretrained(folder)
fields = GGUFReader(file).fields

# As in llama.cpp: the longest of these tokens is found first, anywhere in the text, and what it leaves is split by the rule of words.
kinds, texts = (fields[f"tokenizer.ggml.{name}"].contents() for name in ("token_type", "tokens"))
found = sorted((re.escape(text) for text, kind in zip(texts, kinds) if kind == USER_DEFINED), key=len, reverse=True)
saved = json.loads((folder / "tokenizer.json").read_text())
words, *others = saved["pre_tokenizer"]["pretokenizers"]
splits = []
for at, rule in enumerate([*found, words["pattern"]["Regex"]]):
    whole = "".join(rf"\A(?:{text})\z|" for text in found[:at])
    splits.append({"type": "Split", "pattern": {"Regex": whole + rule}, "behavior": "Isolated", "invert": False})
saved["pre_tokenizer"]["pretokenizers"] = [*splits, *others]
saved["model"]["ignore_merges"] = True
saved["added_tokens"] = [token for token in saved["added_tokens"] if token["special"]]
(folder / "tokenizer.json").write_text(json.dumps(saved))
# The class of the architecture has rules of its own.
settings = json.loads((folder / "tokenizer_config.json").read_text())
(folder / "tokenizer_config.json").write_text(json.dumps({**settings, "tokenizer_class": "TokenizersBackend"}))

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
