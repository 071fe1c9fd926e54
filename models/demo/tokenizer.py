"""A small byte-level BPE tokenizer, made so that llama.cpp splits text in exactly the same way.

Three choices serve a model that lives by copying:

* Merges join letters with letters and punctuation with punctuation, never across. So `Paris` is the same tokens
  after a space, after a quotation mark and after an underscore, and a copied argument is a copied token sequence.
  Only very common words get a second form with the space in front (`Ġthe`), as the last merges of all.
* Digits are single tokens (the `qwen2` pre-tokenizer does that).
* The boilerplate of tool schemas and calls (`{"type": "function", "function": {"name": "`) is in the vocabulary as
  user-defined tokens, which llama.cpp matches longest first, before anything else. A tool costs about 40 tokens.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]

USER_DEFINED = [
    "<think>",
    "</think>",
    "<tools>",
    "</tools>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
    '{"type": "function", "function": {"name": "',
    '", "description": "',
    ', "parameters": {"type": "object", "properties": {"',
    ', "parameters": {"type": "object", "properties": {}',
    '": {"type": "string"',
    '": {"type": "integer"',
    '": {"type": "number"',
    '": {"type": "boolean"',
    ', "enum": ["',
    ', "description": "',
    '"}, "',
    '"]}, "',
    '}, "',
    '"}}, "required": ["',
    '"]}}, "required": ["',
    '}}, "required": ["',
    ', "required": []',
    '"]}}}\n',
    '{"name": "',
    '", "arguments": {"',
    '", "arguments": {}}\n',
    '"}}\n',
    '}}\n',
    '": "',
    '", "',
    ', "',
    '": ',
    '{"',
    '"}',
]

# The `qwen2` pre-tokenizer of llama.cpp, with `\p{L}` and `\p{N}` written for Python's re.
_LETTER = r"[^\W\d_]"
_PRE_TOKEN = re.compile(
    r"'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])"
    rf"|(?:(?!{_LETTER})[^\r\n\d])?{_LETTER}+"
    r"|\d"
    r"| ?(?:[^\s\w]|_)+[\r\n]*"
    r"|\s*[\r\n]+"
    r"|\s+(?!\S)"
    r"|\s+"
)


def byte_alphabet() -> list[str]:
    """GPT-2's printable stand-in for each byte; GGUF vocabularies of type `gpt2` are written in it."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table, extra = [""] * 256, 0
    for byte in range(256):
        if byte in printable:
            table[byte] = chr(byte)
        else:
            table[byte] = chr(256 + extra)
            extra += 1
    return table


BYTES = byte_alphabet()
SPACE = BYTES[32]


def _as_symbols(text: str) -> tuple[str, ...]:
    return tuple(BYTES[b] for b in text.encode("utf-8"))


class Tokenizer:
    """Encodes and decodes; the ids are: bytes, merges in order, user-defined tokens, control tokens."""

    def __init__(self, merges: list[tuple[str, str]]):
        self.merges = merges
        self.tokens = [*BYTES, *(a + b for a, b in merges), *USER_DEFINED, *CONTROL]
        self.ids = {token: i for i, token in enumerate(self.tokens)}
        assert len(self.ids) == len(self.tokens), "a merge was made twice"
        self.rank = {pair: i for i, pair in enumerate(merges)}
        self.first_special = len(self.tokens) - len(USER_DEFINED) - len(CONTROL)
        self.special = {token: self.ids[token] for token in (*USER_DEFINED, *CONTROL)}
        # One alternation, longest first, cuts as llama.cpp does with its pass per token: see `_split_special`.
        self._longest_first = sorted(self.special, key=len, reverse=True)
        self._cache: dict[str, list[int]] = {}
        self._unmap = {symbol: byte for byte, symbol in enumerate(BYTES)}

    @property
    def size(self) -> int:
        return len(self.tokens)

    def _split_special(self, text: str) -> list[str | int]:
        """Cut out special tokens the way llama.cpp does: all occurrences of the longest first, then of the next."""
        parts: list[str | int] = [text]
        for token in self._longest_first:
            if token not in text:
                continue
            cut: list[str | int] = []
            for part in parts:
                if isinstance(part, int):
                    cut.append(part)
                    continue
                pieces = part.split(token)
                for i, piece in enumerate(pieces):
                    if i:
                        cut.append(self.special[token])
                    if piece:
                        cut.append(piece)
            parts = cut
        return parts

    def _merge(self, word: str) -> list[int]:
        found = self._cache.get(word)
        if found is not None:
            return found
        symbols = list(_as_symbols(word))
        while len(symbols) > 1:
            ranks = [self.rank.get(pair, 1 << 30) for pair in zip(symbols, symbols[1:])]
            best = min(ranks)
            if best == 1 << 30:
                break
            at = ranks.index(best)
            symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]
        ids = [self.ids[s] for s in symbols]
        if len(self._cache) < 200_000:
            self._cache[word] = ids
        return ids

    def encode(self, text: str) -> list[int]:
        """Token ids of a rendered prompt; control tokens in it are recognised."""
        ids: list[int] = []
        for part in self._split_special(text):
            if isinstance(part, int):
                ids.append(part)
            else:
                for match in _PRE_TOKEN.finditer(part):
                    ids.extend(self._merge(match.group()))
        return ids

    def decode(self, ids: list[int]) -> str:
        data = bytearray()
        for i in ids:
            token = self.tokens[i]
            if i >= self.first_special:
                data += token.encode("utf-8")
            else:
                data += bytes(self._unmap[c] for c in token)
        return data.decode("utf-8", "replace")

    def letter_pieces(self) -> list[str]:
        """Tokens made of lower-case letters: spelling drills are built from them, so that no token stays unspelt."""
        return [a + b for a, b in self.merges if (a + b).isascii() and (a + b).isalpha() and (a + b).islower()]

    def save(self, path: Path) -> None:
        path.write_text(json.dumps({"merges": [" ".join(m) for m in self.merges]}, ensure_ascii=False, indent=0) + "\n")

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        return cls([tuple(m.split(" ")) for m in json.loads(path.read_text())["merges"]])


def _kind(symbols: str) -> str:
    if symbols.isalpha() and symbols.isascii():
        return "letters"
    return "space" if SPACE in symbols else "other"


def train(texts: list[str], vocabulary: int, spaced_words: int) -> Tokenizer:
    """Learn merges from rendered conversations: inside words first, then the commonest words with their space."""
    plain = Tokenizer([])
    words: Counter[str] = Counter()
    for text in texts:
        for part in plain._split_special(text):
            if isinstance(part, str):
                words.update(m.group() for m in _PRE_TOKEN.finditer(part))
    room = vocabulary - plain.size - spaced_words
    words = Counter({word: n for word, n in words.items() if n > 2})  # an invented word teaches the vocabulary nothing
    split = {word: list(_as_symbols(word)) for word in words}
    merges: list[tuple[str, str]] = []
    while len(merges) < room:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, symbols in split.items():
            for pair in zip(symbols, symbols[1:]):
                pairs[pair] += words[word]
        allowed = [(n, p) for p, n in pairs.items() if _kind(p[0]) == _kind(p[1]) == "letters" or p[0] == p[1] == SPACE]
        count, best = max(allowed)
        merges.append(best)
        for word, symbols in split.items():
            _apply(symbols, best)
    spaced: Counter[str] = Counter()
    for word, symbols in split.items():
        if len(symbols) == 2 and symbols[0] == SPACE and symbols[1].islower() and 1 < len(symbols[1]) < 9:
            spaced[symbols[1]] += words[word]
    merges += [(SPACE, word) for word, _ in spaced.most_common(spaced_words)]
    return Tokenizer(merges)


def _apply(symbols: list[str], pair: tuple[str, str]) -> None:
    i = 0
    while i < len(symbols) - 1:
        if symbols[i] == pair[0] and symbols[i + 1] == pair[1]:
            symbols[i : i + 2] = [pair[0] + pair[1]]
        i += 1
