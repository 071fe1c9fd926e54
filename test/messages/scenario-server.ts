import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import { openBuilt } from "../engine/local-engine.ts";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";
import {
  chatUpstream,
  completionsUpstream,
  messagesUpstream,
  program,
  responsesUpstream,
  scripts,
} from "./scenario-sources.ts";

/** The names of the models of `serveScenarios`: one for each kind of source. */
export const scenarioSources = [
  "local model",
  "program",
  "chat upstream",
  "completions upstream",
  "responses upstream",
  "messages upstream",
] as const;

/** Starts Truewire before a local model, a program, and a server of each API, all of which answer the scenarios. */
export async function serveScenarios(wire: "lean" | "exact" = "lean"): Promise<TruewireServer> {
  const folder = mkdtempSync(join(tmpdir(), "truewire-scenarios-"));
  const path = join(folder, "local.gguf");
  writeProgrammedModel(path, { scripts });
  const [chat, completions] = [await chatUpstream(), await completionsUpstream()];
  const [responses, messages] = [await responsesUpstream(), await messagesUpstream()];
  const server = await createServer({
    port: 0,
    logLevel: "silent",
    wire,
    models: [
      { kind: "engine", engine: await openBuilt({ model: path, name: "local model" }) },
      { kind: "program", program, name: "program" },
      { kind: "upstream", url: chat.url, models: { "chat upstream": "m" }, name: "chat" },
      { kind: "upstream", url: completions.url, models: { "completions upstream": "m" }, name: "completions" },
      {
        kind: "upstream",
        url: responses.url,
        api: "responses",
        models: { "responses upstream": "m" },
        name: "responses",
      },
      { kind: "upstream", url: messages.url, api: "messages", models: { "messages upstream": "m" }, name: "messages" },
    ],
  });
  return {
    ...server,
    async close() {
      await server.close();
      for (const upstream of [chat, completions, responses, messages]) await upstream.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
