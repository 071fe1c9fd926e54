import { afterAll, beforeAll, expect, test } from "vitest";
import { SocketClient } from "../support/response-socket.ts";
import { until } from "../support/scripted-engine.ts";
import { startTruewire, type RunningTruewire } from "../support/serve.ts";

let server: RunningTruewire;
let client: SocketClient;
beforeAll(async () => {
  server = await startTruewire(["models/demo/demo.gguf", "--threads", "1", "--gpu", "off"]);
  client = await new SocketClient(server.url).opened();
}, 90_000);
afterAll(async () => {
  client.socket.terminate();
  await server.stop();
});

interface Usage {
  readonly input_tokens: number;
  readonly input_tokens_details: { readonly cached_tokens: number };
}

/** What a template writes at the end of a prompt to begin the answer, and may write differently into the history. In tokens. */
const generationPrompt = 16;

test("the successor of a steered response does not process its prompt again", async () => {
  const instructions = `Answer briefly. ${"The user plants tomatoes, beans and pumpkins. ".repeat(30)}`;
  client.send({ model: "demo", input: "Hello! Who are you?", instructions, store: false, max_output_tokens: 60 });
  await until(() => client.events.some(({ type }) => type === "response.output_text.delta"), "it begins");
  client.steer(client.events[0]?.response?.id ?? "", "What can you do?");
  const ended = (): typeof client.events =>
    client.events.filter(({ type }) => type === "response.completed" || type === "response.incomplete");
  await until(() => ended().length === 2, "both responses end");
  const [first, second] = ended().map(
    ({ response }) => response as unknown as { usage: Usage; previous_response_id: string },
  );
  expect(first?.usage.input_tokens).toBeGreaterThan(200);
  const { input_tokens: prompt = 0 } = first?.usage ?? {};
  expect(second?.previous_response_id).toBe(client.events[0]?.response?.id);
  expect(second?.usage.input_tokens).toBeGreaterThan(prompt);
  expect(second?.usage.input_tokens_details.cached_tokens).toBeGreaterThanOrEqual(prompt - generationPrompt);
});
