import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterEach, describe, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import type { KeyEntry } from "../../src/serve/config/keys-schema.ts";
import { answer, ScriptedEngine } from "../support/scripted-engine.ts";
import { serving } from "../support/transports.ts";
import { keyOf, recordingLog } from "./support.ts";

/** A way in which an official SDK asks. */
interface Asking {
  readonly name: string;
  readonly tooMany: typeof OpenAI.RateLimitError | typeof Anthropic.RateLimitError;
  ask(url: string, key: string, maxRetries: number): Promise<unknown>;
}

const ways: readonly Asking[] = [
  {
    name: "openai, chat",
    tooMany: OpenAI.RateLimitError,
    ask: (url, apiKey, maxRetries) =>
      new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries }).chat.completions.create({
        model: "scripted",
        messages: [{ role: "user", content: "Hello" }],
      }),
  },
  {
    name: "openai, Responses",
    tooMany: OpenAI.RateLimitError,
    ask: (url, apiKey, maxRetries) =>
      new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries }).responses.create({ model: "scripted", input: "Hello" }),
  },
  {
    name: "@anthropic-ai/sdk",
    tooMany: Anthropic.RateLimitError,
    ask: (url, apiKey, maxRetries) =>
      new Anthropic({ baseURL: url, apiKey, maxRetries }).messages.create({
        model: "scripted",
        max_tokens: 10,
        messages: [{ role: "user", content: "Hello" }],
      }),
  },
];

describe.each(ways)("a limit through $name", ({ tooMany, ask }) => {
  let server: TruewireServer | undefined;
  afterEach(() => server?.close(0));

  const serve = async (limits: Partial<KeyEntry>) => {
    const engine = new ScriptedEngine(() => answer(["Hi"]));
    const { key, entry } = keyOf("alice", limits);
    const { log, lines } = recordingLog();
    server = await createServer({ ...serving(engine, { keys: [entry] }), port: 0 }, { log });
    const { url } = server;
    const once = (maxRetries: number): Promise<unknown> => ask(url, key, maxRetries);
    return { once, statuses: () => lines.map(({ status }) => status) };
  };

  test("it waits as long as it is told and then has its answer", async () => {
    // One more is free every 1.5 seconds: an SDK that chose for itself would ask again after half a second, and fail.
    const { once, statuses } = await serve({ requestsPerMinute: 40 });
    const isTooMany = (one: PromiseSettledResult<unknown>): boolean =>
      one.status === "rejected" && one.reason instanceof tooMany;
    let asked = 0;
    // On a busy machine, some become free while the others are sent.
    for (let isRefused = false; !isRefused; asked += 41)
      isRefused = (await Promise.allSettled(Array.from({ length: 41 }, () => once(0)))).some(isTooMany);
    await once(1);
    // Between the refusal and this, one may have become free.
    expect([[429, 200], [200]]).toContainEqual(statuses().slice(asked));
  });

  test("it does not ask again where the budget of the day is spent", async () => {
    const { once, statuses } = await serve({ tokensPerDay: 1 });
    await expect(once(3)).rejects.toThrow(tooMany);
    expect(statuses()).toEqual([429]);
  });
});
