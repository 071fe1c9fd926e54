import { expect, test } from "vitest";
import { TextSplitter } from "./tokenize-prompt.ts";
import type { Vocabulary } from "./vocabulary.ts";

function piecesOf(control: readonly string[], userDefined: readonly string[] = []): TextSplitter {
  return new TextSplitter({
    controlTexts: () => control,
    userDefinedTexts: () => userDefined,
  } as unknown as Vocabulary);
}

const long = "x".repeat(5000);

test("a long text is split before each control token", () => {
  const pieces = piecesOf(["<|end|>", "<|start|>"]);
  expect(pieces.split(`<|start|>${long}<|end|>\n<|start|>more`)).toEqual([
    `<|start|>${long}`,
    "<|end|>\n",
    "<|start|>more",
  ]);
});

test("a short text, and one without control tokens, is one chunk", () => {
  expect(piecesOf(["<|end|>"]).split("a<|end|>b")).toEqual(["a<|end|>b"]);
  expect(piecesOf(["<|end|>"]).split(long)).toEqual([long]);
  expect(piecesOf([]).split(long)).toEqual([long]);
});

test("no split within a longer token that is not a control token", () => {
  const pieces = piecesOf(["<|end|>", "(.*)"], ["[<|end|>]"]);
  expect(pieces.split(`${long}[<|end|>]<|end|>(.*)`)).toEqual([`${long}[<|end|>]`, "<|end|>", "(.*)"]);
});
