import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import { answerOf } from "../fixtures/scripts.ts";
import { byChat, byCompletions, byMessages, byResponses, nothing } from "./scenario-clients.ts";
import type { Answer } from "./scenario-clients.ts";
import { noChatModel, onlyChatModel, scripts } from "./scenario-sources.ts";
import { scenarioSources, serveScenarios } from "./scenario-server.ts";
import { scenarios } from "./scenarios.ts";
import type { Scenario } from "./scenarios.ts";

/*
 * Clients of every API get the same answer from every source: chat, legacy completions, Responses and Messages from a local model, a
 * program, and servers of each of these APIs. Each pair is tested with a text, reasoning, two calls, an answer that is cut, and an error
 * (of the local model: a prompt that is too long for it).
 *
 * Completions have no members for reasoning and calls, so their clients get only the text, and from a local model everything that it
 * generates. A server of completions cannot answer a conversation, and a server of conversations cannot continue a text: both requests are
 * refused with a status.
 */

const expected: Readonly<Record<Scenario, Answer>> = {
  text: { ...nothing(), text: "Hello there.", end: "stop" },
  reasoning: { ...nothing(), reasoning: "Hm.", text: "Yes.", end: "stop" },
  calls: {
    ...nothing(),
    text: "I look.",
    calls: [
      ["look", { at: 1 }],
      ["wait", {}],
    ],
    end: "calls",
    runs: ["look", "wait"],
  },
  cut: { ...nothing(), text: "Once upon a", end: "length" },
  error: { ...nothing(), tokens: null },
};

const clients = { chat: byChat, completions: byCompletions, responses: byResponses, messages: byMessages } as const;

const anyTokens = [expect.any(Number), expect.any(Number)] as const;

/** The answer that each client gets from each source. An error comes before anything is sent, or after some of it. */
function expectedOf(
  client: keyof typeof clients,
  source: (typeof scenarioSources)[number],
  scenario: Scenario,
  how: "stream" | "whole",
): Answer {
  const isText = client === "completions";
  const refusal =
    !isText && source === "completions upstream"
      ? noChatModel
      : isText && (source === "responses upstream" || source === "messages upstream")
        ? onlyChatModel
        : null;
  if (refusal !== null) return { ...nothing(), tokens: null, failed: "status", refusal };
  const isLocal = source === "local model";
  const said = { ...expected[scenario], ...(isLocal && { tokens: anyTokens }) };
  if (scenario === "error")
    return { ...said, tokens: null, failed: how === "stream" && !isLocal ? "stream" : "status" };
  if (!isText) return said;
  const text = isLocal && scenario !== "cut" ? answerOf(scripts[scenario]) : said.text;
  return { ...nothing(), tokens: said.tokens, text, end: said.end === "length" ? "length" : "stop" };
}

let server: TruewireServer;

beforeAll(async () => {
  server = await serveScenarios();
});

afterAll(() => server.close());

describe.each(Object.keys(clients) as (keyof typeof clients)[])("a client of %s", (client) => {
  describe.each(scenarioSources)("before a source of kind %s", (source) => {
    test.each(scenarios)("%s", async (scenario) => {
      const streamed = await clients[client](server, source, scenario, true);
      const whole = await clients[client](server, source, scenario, false);
      expect(streamed).toEqual(expectedOf(client, source, scenario, "stream"));
      expect(whole).toEqual(expectedOf(client, source, scenario, "whole"));
    });
  });
});

test("a text that no model can continue is refused with OpenAI's error, which names the right API", async () => {
  const response = await fetch(`${server.url}/v1/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "messages upstream", prompt: "Once upon a" }),
  });
  expect(response.status).toBe(404);
  const error = { message: onlyChatModel, type: "invalid_request_error", param: "model", code: null };
  expect(await response.json()).toEqual({ error });
});
