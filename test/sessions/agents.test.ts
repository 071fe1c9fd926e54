import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunningTruewire } from "../support/serve.ts";
import { agents } from "./clients/agents.ts";
import type { SessionAgent } from "./clients/agents.ts";
import type { Double } from "../doubles/chat-server.ts";
import { finalText, scriptedText } from "../doubles/task.ts";
import type { Step } from "../doubles/task.ts";
import { serveConfig, sources, upstreamEntry } from "./sources.ts";

/*
 * Agents themselves: a turn with parallel commands, a command without reasoning that fails, and one after reasoning without a text, then a
 * resumed session. No test had an agent over a server that demands the state of its turns. Each source has one agent;
 * `TRUEWIRE_SESSIONS=1` runs every agent over every source, and prints what became of the states.
 */

const slugs: Readonly<Record<string, string>> = {
  "Gemini 3": "gemini-3-pro-preview",
  "OpenRouter, Gemini 3": "openrouter-gemini-3",
  DeepSeek: "deepseek-v4",
  Kimi: "kimi-k2-thinking",
  "Anthropic, account A": "claude-opus-4-6",
  "OpenAI, account A": "gpt-5",
};

const chosen = sources.filter(({ name }) => name in slugs);
const isWhole = process.env["TRUEWIRE_SESSIONS"] !== undefined;
const found = agents(isWhole);
const cells = chosen.flatMap((source, at) =>
  (isWhole ? found : found.filter((_, index) => index === at % found.length)).map((agent) => ({
    agent,
    source: source.name,
    name: `${agent.name} | ${source.name}`,
  })),
);

describe.skipIf(found.length === 0)("agents", () => {
  const doubles = new Map<string, Double>();
  let server: RunningTruewire;
  beforeAll(async () => {
    for (const source of chosen) doubles.set(source.name, await source.start());
    const models = chosen.map((source) => ({
      ...upstreamEntry(source, doubles.get(source.name)?.url ?? ""),
      models: { [slugs[source.name] ?? ""]: source.model },
    }));
    server = await serveConfig({ models, logLevel: "info" }, ["--log-format", "json"]);
  });
  afterAll(async () => {
    await server.stop("SIGKILL");
    for (const double of doubles.values()) await double.close();
  });

  test.each(cells.map((cell) => [cell.name, cell] as const))("%s", async (name, { agent, source }) => {
    const double = doubles.get(source);
    if (!double) throw new Error(`no double of ${source}`);
    const [before, logged] = [double.refusals.length, server.stderr().length];
    const session = await agent.open(server.url, slugs[source] ?? "");
    const outputs: string[] = [];
    try {
      for (const [turn, steps] of [
        [3, firstSteps(agent)],
        [4, secondSteps(agent)],
      ] as const)
        outputs.push(
          await session.turn(scriptedText(`agent-${cells.findIndex((cell) => cell.name === name)}`, turn, steps)),
        );
      if (isWhole) console.log(`${name}: ${states(server.stderr().slice(logged))}`);
      const refusals = double.refusals.slice(before);
      const ran = read(join(session.folder, "ran.txt")).split("\n").filter(Boolean);
      const done = [3, 4].map((turn, at) => outputs[at]?.includes(finalText(turn)));
      expect({ refusals, ran: ran.toSorted(), done, outputs: done.every(Boolean) ? [] : outputs }).toEqual({
        refusals: [],
        ran: ["a", "b", "c", "d", "e", "f"],
        done: [true, true],
        outputs: [],
      });
      expect(double.lost).toEqual([]);
    } finally {
      await session.close();
    }
  });
});

function firstSteps({ shell }: SessionAgent): readonly Step[] {
  return [
    {
      reasoning: 'Two things — „left“ & "right".\nBoth at once. 😀',
      text: "I look.",
      calls: ["a", "b"].map((letter) => shell(`echo ${letter} >> ran.txt`)),
    },
    { calls: [shell("echo c >> ran.txt; cat missing.txt")] },
    { reasoning: "It cannot be read.", calls: [shell("echo d >> ran.txt")] },
    { reasoning: "That is all.", text: finalText(3), calls: [] },
  ];
}

function secondSteps({ shell }: SessionAgent): readonly Step[] {
  return [
    { reasoning: "Go on.", calls: [shell("echo e >> ran.txt")] },
    { calls: [shell("echo f >> ran.txt")] },
    { reasoning: "Done.", text: finalText(4), calls: [] },
  ];
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

/** What became of the states of a session's requests: each record of the log that says it. */
function states(log: string): string {
  const found = log.split("\n").flatMap((line) => {
    if (!line.includes('"turnStates"')) return [];
    const { turnStates } = JSON.parse(line) as { turnStates?: unknown };
    return [JSON.stringify(turnStates)];
  });
  return found.join(" ");
}
