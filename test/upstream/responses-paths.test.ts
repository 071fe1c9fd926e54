import { expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import { startOpenAi } from "../doubles/openai.ts";
import { closeAfterTest } from "../support/close-after-test.ts";
import { json } from "../support/transports.ts";
import { startScripted } from "./scripted-server.ts";
import type { ScriptedServer } from "./scripted-server.ts";

// What a server of the Responses API has behind its further paths is asked there.

async function gatewayTo(url: string): Promise<(path: string, body: object) => Promise<Response>> {
  const models = [{ kind: "upstream", url, api: "responses", key: "none" }] as const;
  const server = await createServer({ port: 0, logLevel: "silent", models });
  closeAfterTest(() => server.close(0));
  return (path, body) => fetch(`${server.url}/v1${path}`, json(body));
}

async function upstream(answers: Readonly<Record<string, object>>): Promise<ScriptedServer> {
  const server = await startScripted((response) => {
    const found = answers[response.req.url ?? ""];
    response.writeHead(found ? 200 : 404, { "content-type": "application/json" });
    response.end(JSON.stringify(found ?? { error: { message: "Not found." } }));
  });
  closeAfterTest(() => server.close());
  return server;
}

const compaction = {
  id: "resp_of_the_server",
  object: "response.compaction",
  created_at: 1_800_000_000,
  output: [{ id: "cmp_1", type: "compaction", encrypted_content: "gAAAA" }],
  usage: { input_tokens: 141, output_tokens: 183, total_tokens: 324 },
};

// Truewire counted by an estimate, and made a compaction that is as long as the conversation.
test("tokens are counted, and conversations compacted, by an upstream of this API, with what the client sent", async () => {
  const server = await upstream({
    "/v1/responses/input_tokens": { object: "response.input_tokens", input_tokens: 16 },
    "/v1/responses/compact": compaction,
  });
  const ask = await gatewayTo(server.url);
  const body = { model: "m", input: [{ role: "user", content: "Hi" }], instructions: "Be kind." };
  const counted = await ask("/responses/input_tokens", { ...body, previous_response_id: "resp_of_the_server" });
  expect([counted.headers.get("x-truewire-estimate"), await counted.json()]).toMatchObject([
    null,
    { input_tokens: 16 },
  ]);
  const compacted = await ask("/responses/compact", { ...body, prompt_cache_key: "k" });
  expect(await compacted.json()).toEqual(compaction);
  const messages = await ask("/messages/count_tokens", { model: "m", messages: body.input, system: "Be kind." });
  expect(await messages.json()).toMatchObject({ input_tokens: 16 });
  expect(server.requests.map(({ path, body: sent }) => [path, sent])).toEqual([
    ["/v1/responses/input_tokens", { ...body, previous_response_id: "resp_of_the_server" }],
    ["/v1/responses/compact", { ...body, prompt_cache_key: "k" }],
    [
      "/v1/responses/input_tokens",
      {
        model: "m",
        input: [
          { role: "system", content: "Be kind." },
          { role: "user", content: "Hi" },
        ],
      },
    ],
  ]);
});

test("an upstream without these paths is answered for, by an estimate and with the whole conversation", async () => {
  const server = await upstream({});
  const ask = await gatewayTo(server.url);
  const body = { model: "m", input: [{ role: "user", content: "Hi" }] };
  const counted = await ask("/responses/input_tokens", body);
  expect([counted.headers.get("x-truewire-estimate"), await counted.json()]).toMatchObject([
    "tokens",
    { input_tokens: expect.any(Number) as number },
  ]);
  const compacted = (await (await ask("/responses/compact", body)).json()) as typeof compaction;
  expect(compacted.output.map(({ type }) => type)).toEqual(["message", "compaction"]);
});

// OpenAI's responses of one conversation have ids that begin alike, and the second took the place of the first: the third was refused.
test.each([true, false])(
  "a conversation over OpenAI goes on from response to response, streamed: %s",
  async (stream) => {
    let turn = 0;
    const openai = await startOpenAi({ turn: () => ({ text: `Answer ${++turn}.` }) });
    closeAfterTest(() => openai.close());
    const ask = await gatewayTo(openai.url);
    let previous: string | undefined;
    for (let at = 1; at <= 5; at++) {
      const link = previous !== undefined && { previous_response_id: previous };
      const answer = await ask("/responses", { model: "gpt-5", input: `Question ${at}?`, stream, ...link });
      const text = await answer.text();
      expect(answer.status, text).toBe(200);
      expect(text).toContain(`Answer ${at}.`);
      previous = /"id": ?"(resp_[^"]+)"/.exec(text)?.[1];
    }
    expect(JSON.stringify(openai.requests.at(-1)?.["input"]).match(/(?:Question|Answer) \d/g)).toEqual(
      [1, 2, 3, 4].flatMap((at) => [`Question ${at}`, `Answer ${at}`]).concat("Question 5"),
    );
  },
);
