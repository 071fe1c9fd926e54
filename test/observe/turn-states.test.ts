import { afterAll, beforeAll, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import type { TurnStateCounts } from "../../src/wire/core/generation-observer.ts";
import type { Engine } from "../../src/wire/core/engine.ts";
import { silentLog } from "../../src/serve/server/log.ts";
import { answer, ScriptedEngine } from "../support/scripted-engine.ts";
import { chat, serving } from "../support/transports.ts";
import { readExposition, total } from "./read-metrics.ts";

const none: TurnStateCounts = { kept: 0, restored: 0, missing: 0, foreign: 0, standIns: 0, dropped: 0 };
const some: TurnStateCounts = { ...none, kept: 2, restored: 1, standIns: 3, dropped: 1 };

/** Reports the counts of each attempt: only those of the last one are what the answer was made with. */
class ReportingEngine extends ScriptedEngine {
  override generate(...[request, observer]: Parameters<Engine["generate"]>): ReturnType<ScriptedEngine["generate"]> {
    if (request.model === "sessions") {
      observer?.turnStates?.({ ...none, foreign: 7 });
      observer?.turnStates?.(some);
    } else observer?.turnStates?.(none);
    return super.generate(request);
  }
}

let server: TruewireServer;
const lines: Readonly<Record<string, unknown>>[] = [];
beforeAll(async () => {
  const engine = new ReportingEngine(() => answer(["Hi"]), "sessions", "plain");
  const log = { ...silentLog, info: (fields: Readonly<Record<string, unknown>>) => void lines.push(fields) };
  server = await createServer({ ...serving(engine), port: 0, inspect: true }, { log });
  for (const model of ["sessions", "plain"])
    await (await fetch(`${server.url}/v1/chat/completions`, chat("hi", { model }))).text();
});
afterAll(() => server.close(0));

test("what became of the states of earlier turns is in the request's line, the metrics and Inspect, and nothing where there was none", async () => {
  const line = (model: string): unknown => lines.find((fields) => fields["model"] === model)?.["turnStates"];
  expect(line("sessions")).toEqual({ kept: 2, restored: 1, standIns: 3, dropped: 1 });
  expect(line("plain")).toBeUndefined();
  const numbers = readExposition(await (await fetch(`${server.url}/metrics`)).text());
  for (const [fate, count] of Object.entries({ kept: 2, restored: 1, stand_in: 3, dropped: 1, foreign: 0, missing: 0 }))
    expect(total(numbers, "truewire_turn_states_total", { gen_ai_request_model: "sessions", fate })).toBe(count);
  expect(total(numbers, "truewire_turn_states_total", { gen_ai_request_model: "plain" })).toBe(0);
  const { requests } = (await (await fetch(`${server.url}/admin/requests`)).json()) as {
    readonly requests: readonly { readonly model?: string; readonly turn_states?: unknown }[];
  };
  expect(requests.find(({ model }) => model === "sessions")?.turn_states).toEqual(some);
  expect(requests.find(({ model }) => model === "plain")).not.toHaveProperty("turn_states");
});
