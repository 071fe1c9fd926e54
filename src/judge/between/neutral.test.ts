import { expect, test } from "vitest";
import type { GenerationRequest } from "../../wire/core/request.ts";
import { readChatRequest } from "../../wire/apis/chat/request.ts";
import { differences } from "./compare.ts";
import { laterRules, neutralRequest } from "./neutral.ts";

const read = (body: object): GenerationRequest => readChatRequest({ model: "m", ...body }, "req_1").request;
const user = { role: "user", content: "Hi" };

// Two members that no API shares were "in another order" where a gateway had only written them in another one.
test("the order of a request's members is no difference", () => {
  const extra = { store: true, metadata: { run: "17" } };
  const request = { ...read({ messages: [user] }), extra };
  const other = { ...request, extra: { metadata: extra.metadata, store: true } };
  expect(differences(neutralRequest(request), neutralRequest(other))).toEqual([]);
});

// Reasoning items of Responses may have neither: a part without any member was lost.
test("reasoning without a text and a state is no part", () => {
  const content = [
    { type: "reasoning", text: "" },
    { type: "text", text: "It rains." },
  ] as const;
  const plain = read({ messages: [user] });
  const prompt = { ...plain.prompt, messages: [{ role: "assistant", content }] } as GenerationRequest["prompt"];
  const request = { ...plain, prompt };
  expect(neutralRequest(request)["messages"]).toEqual([{ role: "assistant", content: [{ text: "It rains." }] }]);
});

test("rules between turns are those after the first turn", () => {
  const rule = (content: string): object => ({ role: "developer", content });
  expect(laterRules(read({ messages: [rule("a"), user, rule("b")] }))).toEqual(["b"]);
  expect(laterRules(read({ messages: [rule("a"), rule("b")] }))).toEqual([]);
});
