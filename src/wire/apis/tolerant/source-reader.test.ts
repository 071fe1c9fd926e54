import { expect, test } from "vitest";
import type * as z from "zod";
import {
  chatAudio,
  chatChoice,
  chatChunk,
  chatCompletion,
  chatMessage,
  chunkAudio,
  chunkChoice,
  chunkDelta,
} from "../chat/schema.ts";
import { completionChoice } from "../completions/schema.ts";
import { memberNames } from "../members.ts";
import { readNames } from "./source-reader.ts";

test.each([
  ["chunk", [chatChunk, chatCompletion], ["moderation", "metadata"]],
  ["choice", [chunkChoice, chatChoice, completionChoice], []],
  ["delta", [chunkDelta, chatMessage], ["audio", "annotations"]],
] as [keyof typeof readNames, z.ZodObject[], string[]][])(
  "%s: the members of the schemas, without those that are passed on as they are",
  (name, schemas, passedOn) => {
    const members = new Set(schemas.flatMap(memberNames));
    for (const member of passedOn) expect(members.delete(member), member).toBe(true);
    expect([...readNames[name]].sort()).toEqual([...members].sort());
  },
);

test("audio has its members in the order of the wire", () => {
  expect(readNames.chunkAudio).toEqual(memberNames(chunkAudio));
  expect(readNames.chatAudio).toEqual(memberNames(chatAudio));
});
