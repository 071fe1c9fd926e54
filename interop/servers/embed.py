"""Prints the embeddings of texts as Sentence Transformers makes them (mean of all tokens, normalized): embed.py FOLDER TEXTS.json."""

import json
import sys

import torch
from transformers import AutoModel, AutoTokenizer

folder, file = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(folder)
# Threads that wait for each other on cores that others use take minutes.
torch.set_num_threads(1)
model = AutoModel.from_pretrained(folder).eval()
vectors = []
with torch.no_grad(), open(file) as texts:
    for text in json.load(texts):
        tokens = tokenizer(text, return_tensors="pt", truncation=True, max_length=512)
        states = model(**tokens).last_hidden_state[0]
        vectors.append(torch.nn.functional.normalize(states.mean(0), dim=0).tolist())
print(json.dumps(vectors))
