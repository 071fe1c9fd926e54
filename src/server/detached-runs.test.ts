import { afterEach, expect, test, vi } from "vitest";
import type { Engine } from "../core/engine.ts";
import type { GenerationRequest } from "../core/request.ts";
import type { DetachedAnswer } from "../apis/port-state.ts";
import { DetachedRuns } from "./detached-runs.ts";
import { silentLog } from "./log.ts";

afterEach(() => {
  vi.useRealTimers();
});

const engine: Pick<Engine, "generate"> = {
  async *generate() {
    yield [{ type: "start", choice: 0 }];
    yield [{ type: "end", end: { kind: "done" } }];
  },
};

// The run rejected without a handler, which ends a Node process, its timer went on telling that the answer goes on, and whoever read the
// answer waited forever. Nothing made a writer throw.
test("a writer that throws ends the run: the answer is stored, its readers end, and no timer is left", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const stored: string[] = [];
  const errors: unknown[] = [];
  const answer: DetachedAnswer = {
    id: "resp_1",
    opening: "opening",
    body: "{}",
    writer: {
      write: () => {
        throw new Error("a defect");
      },
      open: () => "",
      keepAlive: () => "",
    },
    beat: () => Promise.resolve(false),
    end: (text) => {
      stored.push(text);
      return Promise.resolve();
    },
  };
  const runs = new DetachedRuns();
  const log = { ...silentLog, error: (fields: object) => errors.push(fields) };
  const request = {} as GenerationRequest;
  const run = await runs.start({ run: { engine, request }, answer, owner: "o" }, log);
  const read: string[] = [];
  for await (const text of run.events()) read.push(text);
  await runs.stop();
  expect(read).toEqual(["opening"]);
  expect(stored).toEqual(["opening"]);
  expect(errors).toEqual([{ response: "resp_1", cause: expect.stringMatching(/^Error\n +at /) as unknown }]);
  expect(vi.getTimerCount()).toBe(0);
  expect(await runs.find("o", "resp_1")).toBeUndefined();
});
