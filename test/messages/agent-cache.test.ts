import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";
import { startTruewire } from "../support/serve.ts";
import type { RunningTruewire } from "../support/serve.ts";

/** What an agent sends with every request: some 12,000 tokens, since each byte is one for this model. */
const instructions = Array.from(
  { length: 150 },
  (_, at) => `Rule ${at}: read a file before you edit it; never guess its text. `,
)
  .join("")
  .slice(0, 9000);
const tools: Anthropic.Tool[] = Array.from({ length: 10 }, (_, at) => ({
  name: `tool_${at}`,
  description: "Does one thing, and says what came of it. ".repeat(4),
  input_schema: { type: "object", properties: { path: { type: "string" }, lines: { type: "integer" } } },
}));

/**
 * Agents on local models were given up because every turn read the whole prompt again: a header in the system prompt changes with each
 * request, so no prefix ever matched.
 */
describe("an agent's conversation of twenty turns on a local model", () => {
  const folder = mkdtempSync(join(tmpdir(), "truewire-agent-"));
  let server: RunningTruewire;
  beforeAll(async () => {
    const model = join(folder, "agent.gguf");
    writeProgrammedModel(model, { contextLength: 32_768 });
    const sizes = ["--context-size", "32768", "--slots", "2", "--threads", "1", "--gpu", "off"];
    server = await startTruewire([model, ...sizes]);
  });
  afterAll(async () => {
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test("each turn reads only what is new", async () => {
    const client = new Anthropic({ baseURL: server.url, apiKey: "none", maxRetries: 0 });
    const messages: Anthropic.MessageParam[] = [];
    const usages: { readonly read: number; readonly cached: number }[] = [];
    for (let turn = 0; turn < 20; turn++) {
      messages.push({ role: "user", content: `Step ${turn}, please.` });
      const answer = await client.messages.create({
        model: "agent",
        max_tokens: 100,
        system: [
          { type: "text", text: `x-anthropic-billing-header: cc_version=2.1.${turn}; cch=${Math.random()};` },
          { type: "text", text: instructions, cache_control: { type: "ephemeral" } },
        ],
        tools,
        messages,
      });
      messages.push({ role: "assistant", content: answer.content });
      const { input_tokens: fresh, cache_read_input_tokens: cached } = answer.usage;
      usages.push({ read: fresh, cached: cached ?? 0 });
    }
    const shareOf = (turn: number): number => {
      const { read, cached } = usages[turn] ?? { read: 0, cached: 0 };
      return cached / (read + cached);
    };
    expect(usages[0]?.read).toBeGreaterThan(12_000);
    expect(shareOf(1)).toBeGreaterThanOrEqual(0.95);
    expect(shareOf(19)).toBeGreaterThanOrEqual(0.95);
    console.log(`cached: turn 2 ${(shareOf(1) * 100).toFixed(1)} %, turn 20 ${(shareOf(19) * 100).toFixed(1)} %`);
  });
});
