import { afterAll, beforeAll, test } from "vitest";
import { expectDone, runCells } from "./cells.ts";
import type { Cell } from "./cells.ts";
import { rawChat } from "./clients/raw-chat.ts";
import { rawGemini } from "./clients/raw-gemini.ts";
import { rawMessages } from "./clients/raw-messages.ts";
import { rawOllama } from "./clients/raw-ollama.ts";
import { rawResponses } from "./clients/raw-responses.ts";
import { isNightly } from "../support/runs.ts";
import { knownFailures } from "./known-failures.ts";
import { serveSources, sources } from "./sources.ts";
import type { Running } from "./sources.ts";

/*
 * Sessions that change their model: two turns over one source, two over another one, and one over the first again, for ordered pairs.
 * By day, half of the pairs have one API of clients each, and every API each source on both sides; at night every pair has every API.
 */

let running: Running;
beforeAll(async () => {
  running = await serveSources();
});
afterAll(() => running.close());

const clients = [
  rawChat("everything"),
  rawResponses("include"),
  rawMessages("everything"),
  rawOllama("everything"),
  rawGemini("everything"),
];

test.each(clients.map((client, at) => [client.name, client, at] as const))(
  "pairs of sources: %s",
  async (_, client, at) => {
    const cells = sources.flatMap(({ name: from }, i) =>
      sources.flatMap(({ name: to }, j): Cell[] =>
        isNightly || (i + j) % (2 * clients.length) === at
          ? [
              {
                name: `${client.name} | ${from} → ${to}`,
                client,
                models: [from, from, to, to, from],
                // Even turns are short.
                turns: [1, 2, 4, 6, 8],
              },
            ]
          : [],
      ),
    );
    expectDone(await runCells(cells, running.server.url), knownFailures);
  },
);
