import { expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { GenerationEvent } from "../../src/wire/core/events.ts";
import { done, ScriptedEngine } from "../support/scripted-engine.ts";
import { json, serving } from "../support/transports.ts";

// Clients of Ollama offer to think only with models that are listed with it, and most servers do not say it of theirs.
test("a model is listed with thinking once it has reasoned", async () => {
  const engine = new ScriptedEngine(
    ({ model }): readonly (readonly GenerationEvent[])[] => [
      [
        { type: "start", choice: 0 },
        ...(model === "deep" ? [{ type: "reasoning-delta", choice: 0, text: "Hm." } as const] : []),
        { type: "text-delta", choice: 0, text: "Six." },
        { type: "finish", choice: 0, reason: "stop" },
        done,
      ],
    ],
    "deep",
    "plain",
  );
  const server = await createServer({ port: 0, logLevel: "silent", ...serving(engine) });
  try {
    const thinking = async (): Promise<unknown[]> => {
      const { models } = (await (await fetch(`${server.url}/api/tags`)).json()) as {
        models: { model: string; capabilities: string[] }[];
      };
      const listed = models.filter(({ capabilities }) => capabilities.includes("thinking")).map(({ model }) => model);
      const shown = await fetch(`${server.url}/api/show`, json({ model: "deep" }));
      return [listed, ((await shown.json()) as { capabilities: string[] }).capabilities.includes("thinking")];
    };
    expect(await thinking()).toEqual([[], false]);
    for (const model of ["deep", "plain"])
      await (
        await fetch(`${server.url}/api/chat`, json({ model, messages: [{ role: "user", content: "Hi" }] }))
      ).text();
    expect(await thinking()).toEqual([["deep:latest"], true]);
  } finally {
    await server.close(0);
  }
});
