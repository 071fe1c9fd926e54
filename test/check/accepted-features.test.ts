import { expect, test } from "vitest";
import { profileProbes } from "../../src/judge/check/probe/profile-probes.ts";
import { runCheck } from "../../src/judge/check/probe/run-check.ts";
import { requestsSchema } from "../../src/serve/config/requests-schema.ts";
import { groq } from "../doubles/groq.ts";
import { startChat } from "../doubles/chat-server.ts";
import { waitMs } from "../support/hang.ts";

/** Entries of a server's profile that no probe asks for, and why. */
const notProbed: Readonly<Record<string, string>> = {
  legacyFunctions: "a server that has only these refuses tools, which is probed",
  toolChoices: "the probes tool-choice-*",
  outputFormats: "the probes json-object and json-schema",
  extensions: "servers with OpenAI's own rules are in the table",
  imageUrls: "the server would download an image from a public address",
  imageTypes: "there are too many types; refusals name them",
  maxImageSide: "takes large images",
  schemaCompiler: "each compiler refuses other keywords, which its refusals show",
  refusedKeywords: "there are too many keywords; refusals name them",
  toolImages: "OpenAI's own API does not accept them",
  reasoningBudget: "only vLLM has it",
  reasoningMember: "a server that does not know the other name ignores it",
  contextSize: "the model list has it",
  contentParts: "every server gets texts as strings; refusals name the lists that remain",
  toolNames: "refusals name a name that is too long",
  reasoningDemand: "takes a second turn; refusals name the missing reasoning",
  states: "only states of a server's own show it; refusals name the members",
  stateDemand: "takes a second turn; refusals name the missing state",
  encryptedReasoning: "only for Responses; refusals name it",
  itemIds: "only for Responses; takes a second turn",
  templateVariables: "a server that does not know them ignores them",
  truncates: "takes a prompt as long as the context",
  anyArguments: "JSON objects are sent by default, and every server accepts them",
  tokenizer: "is no member of a request",
  cacheReport: "every answer's usage shows it",
  cacheMarks: "a server that does not know them ignores them",
  automaticCache: "a server that does not know the mark ignores it",
  drop: "refusals name the members",
  rename: "only a person knows the other name",
  add: "only a person knows what to add",
  hostedTools: "a probe must not search the web; the host says it, or a person",
};

test("every entry of a profile is probed, or the reason is here", () => {
  const probed = new Set(profileProbes.flatMap(({ refused }) => Object.keys(refused)));
  const missing = Object.keys(requestsSchema.shape).filter((name) => !probed.has(name));
  expect(missing.toSorted()).toEqual(Object.keys(notProbed).toSorted());
  const ids = profileProbes.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
});

test("a check says what a server does not accept", async () => {
  const server = await startChat(groq, "Hi");
  try {
    const { remarks, judged } = await runCheck({ url: server.url, only: ["accepts"], concurrency: 2, timeout: waitMs });
    expect(judged).toHaveLength(profileProbes.length);
    expect(remarks).toEqual([
      "the server does not accept reasoning of an earlier turn, a message with a name, two choices, log probabilities, a custom tool",
    ]);
  } finally {
    await server.close();
  }
});
