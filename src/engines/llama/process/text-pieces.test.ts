import { expect, test } from "vitest";
import { TextPieces } from "./text-pieces.ts";
import type { Vocabulary } from "./vocabulary.ts";

function piecesOf(control: readonly string[], userDefined: readonly string[] = []): TextPieces {
  return new TextPieces({
    controlTexts: () => control,
    userDefinedTexts: () => userDefined,
  } as unknown as Vocabulary);
}

const long = "x".repeat(5000);

test("a long text is cut before each control token", () => {
  const pieces = piecesOf(["<|end|>", "<|start|>"]);
  expect(pieces.of(`<|start|>${long}<|end|>\n<|start|>more`)).toEqual([
    `<|start|>${long}`,
    "<|end|>\n",
    "<|start|>more",
  ]);
});

test("a short text, and one without control tokens, is one piece", () => {
  expect(piecesOf(["<|end|>"]).of("a<|end|>b")).toEqual(["a<|end|>b"]);
  expect(piecesOf(["<|end|>"]).of(long)).toEqual([long]);
  expect(piecesOf([]).of(long)).toEqual([long]);
});

test("no cut within a longer token that is no control token", () => {
  const pieces = piecesOf(["<|end|>", "(.*)"], ["[<|end|>]"]);
  expect(pieces.of(`${long}[<|end|>]<|end|>(.*)`)).toEqual([`${long}[<|end|>]`, "<|end|>", "(.*)"]);
});
