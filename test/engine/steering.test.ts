import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";
import { SocketClient } from "../support/response-socket.ts";
import { until } from "../support/scripted-engine.ts";
import { startTruewire, type RunningTruewire } from "../support/serve.ts";

const folder = mkdtempSync(join(tmpdir(), "truewire-steering-"));
const programmed = join(folder, "programmed.gguf");
/** It reasons for a while, then writes for a while, and greets whoever says anything else. */
const words = (name: string): string[] => Array.from({ length: 800 }, (_, at) => ` ${name}${at}`);
writeProgrammedModel(programmed, {
  scripts: {
    ponder: { say: ["<think>", "\nLet me see.", ...words("thought"), "\n</th", "ink>", "\n\nWell.", ...words("word")] },
    greeting: { say: "Hello!" },
  },
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Shown {
  readonly previous_response_id: string;
  readonly usage: {
    readonly input_tokens: number;
    readonly input_tokens_details: { readonly cached_tokens: number };
    readonly output_tokens: number;
  };
}

/** What a template writes at the end of a prompt to begin the answer, and may write differently into the history. In tokens. */
const generationPrompt = 16;

describe.each([
  ["the demo model", "models/demo/demo.gguf", "demo", "Hello! Who are you?", "completed"],
  ["a model that reasons", programmed, "programmed", "Please #ponder.", "incomplete"],
])("a steered response of %s", (_, file, model, input, status) => {
  let server: RunningTruewire;
  let client: SocketClient;
  beforeAll(async () => {
    server = await startTruewire([file, "--threads", "1", "--gpu", "off"]);
    client = await new SocketClient(server.url).opened();
  });
  afterAll(async () => {
    client.socket.terminate();
    await server.stop();
  });

  test("has a successor that does not process the prompt again", async () => {
    const instructions = `Answer briefly. ${"The user plants tomatoes, beans and pumpkins. ".repeat(30)}`;
    // The demo model's answer is short: it could be over before the steer arrives.
    client.send({
      model,
      input,
      instructions,
      store: false,
      ...(model === "demo" && { min_tokens: 120, max_output_tokens: 150 }),
    });
    await until(() => client.events.some(({ type }) => type.endsWith("delta")), "it begins");
    client.steer(client.events[0]?.response?.id ?? "", "What can you do?");
    const ended = (): typeof client.events =>
      client.events.filter(({ type }) => type === "response.completed" || type === "response.incomplete");
    await until(() => ended().length === 2, "both responses end");
    const [first, second] = ended().map(({ response }) => response as unknown as Shown);
    const { input_tokens: prompt, output_tokens: written } = first?.usage ?? { input_tokens: 0, output_tokens: 0 };
    expect(prompt).toBeGreaterThan(200);
    if (status === "incomplete") {
      expect(first).toMatchObject({
        status,
        incomplete_details: { reason: "steered" },
        output: [{ type: "reasoning" }],
      });
      // All of its reasoning, and little of what follows.
      expect(written).toBeGreaterThan(800);
      expect(written).toBeLessThan(1200);
    }
    expect(second?.previous_response_id).toBe(client.events[0]?.response?.id);
    expect(second?.usage.input_tokens).toBeGreaterThan(prompt);
    expect(second?.usage.input_tokens_details.cached_tokens).toBeGreaterThanOrEqual(prompt - generationPrompt);
  });
});
