import { afterAll, beforeAll, test } from "vitest";
import { expectDone, runCells } from "./cells.ts";
import type { Cell } from "./cells.ts";
import { rawChat } from "./clients/raw-chat.ts";
import { rawGemini } from "./clients/raw-gemini.ts";
import { rawMessages } from "./clients/raw-messages.ts";
import { rawOllama } from "./clients/raw-ollama.ts";
import { rawResponses } from "./clients/raw-responses.ts";
import { knownFailures } from "./known-failures.ts";
import { serveSources, sources } from "./sources.ts";
import type { Running } from "./sources.ts";

/*
 * Sessions that change their model: two turns over one source, two over another one, and one over the first again, for every ordered pair and
 * every API of clients.
 */

let running: Running;
beforeAll(async () => {
  running = await serveSources();
});
afterAll(() => running.close());

test.each([
  rawChat("everything"),
  rawResponses("include"),
  rawMessages("everything"),
  rawOllama("everything"),
  rawGemini("everything"),
])("every ordered pair of sources: $name", async (client) => {
  const cells = sources.flatMap(({ name: from }) =>
    sources.map(({ name: to }): Cell => ({
      name: `${client.name} | ${from} → ${to}`,
      client,
      models: [from, from, to, to, from],
      // Even turns are short.
      turns: [1, 2, 4, 6, 8],
    })),
  );
  expectDone(await runCells(cells, running.server.url), knownFailures);
});
