import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Lanes } from "./lanes.ts";
import type { LaneLimits } from "./lanes.ts";

const limits: LaneLimits = { maxRunning: 16, maxLanes: 32, maxWaiting: 256, maxWaitingBytes: 1000 };

interface Task {
  readonly lane: string | undefined;
  readonly number: number;
}

function opened(own: Partial<LaneLimits> = {}): { readonly lanes: Lanes<Task>; readonly started: Task[] } {
  const started: Task[] = [];
  return { lanes: new Lanes<Task>({ ...limits, ...own }, (task) => void started.push(task)), started };
}

describe("lanes", () => {
  test("for any order of events: a lane runs one task at a time in order, at most 16 run, and none is lost", () => {
    const step = fc.oneof(
      fc.record({ add: fc.integer({ min: 0, max: 24 }) }),
      fc.record({ finish: fc.integer({ min: 0, max: 15 }) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), fc.integer({ min: 1, max: 16 }), (steps, maxRunning) => {
        const running: Task[] = [];
        const started: Task[] = [];
        const added: Task[] = [];
        const lanes = new Lanes<Task>({ ...limits, maxRunning }, (task) => {
          expect(running.some(({ lane }) => lane === task.lane)).toBe(false);
          running.push(task);
          started.push(task);
          expect(running.length).toBeLessThanOrEqual(maxRunning);
        });
        const finish = (at: number): void => {
          const [task] = running.splice(at % Math.max(1, running.length), 1);
          if (task) lanes.finish(task.lane);
        };
        for (const step of steps) {
          if ("finish" in step) finish(step.finish);
          else {
            const task = { lane: step.add === 0 ? undefined : `lane-${step.add}`, number: added.length };
            if (lanes.add(task.lane, task, 1) === null) added.push(task);
          }
          // No lane that could run waits while there is room.
          const idle = added.filter(
            (task) => !started.includes(task) && !running.some(({ lane }) => lane === task.lane),
          );
          expect(running.length === maxRunning || idle.length === 0).toBe(true);
        }
        while (running.length > 0) finish(0);
        expect(started.toSorted((a, b) => a.number - b.number)).toEqual(added);
        for (const lane of new Set(started.map((task) => task.lane))) {
          const numbers = started.flatMap((task) => (task.lane === lane ? [task.number] : []));
          expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
        }
        expect(lanes.size).toBe(0);
      }),
      { numRuns: 300 },
    );
  });

  test("a lane with many tasks does not keep others waiting", () => {
    const { lanes, started } = opened({ maxRunning: 1 });
    for (const [number, lane] of ["a", "a", "a", "b", undefined].entries()) lanes.add(lane, { lane, number }, 1);
    for (let at = 0; at < 5; at++) lanes.finish(started.at(-1)?.lane);
    expect(started.map(({ number }) => number)).toEqual([0, 3, 4, 1, 2]);
  });

  test("the lane without a name is not counted, and a lane stays known when it is empty", () => {
    const { lanes } = opened({ maxLanes: 2 });
    const add = (lane?: string): unknown => lanes.add(lane, { lane, number: 0 }, 1);
    expect([add("a"), add("b"), add(), add("c"), add("a")]).toEqual([null, null, null, "too-many-lanes", null]);
    for (const name of ["a", "a", "b", undefined]) lanes.finish(name);
    expect([lanes.size, add("c"), add("b")]).toEqual([0, "too-many-lanes", null]);
  });

  test("waiting tasks are limited by number and bytes; one may have any size", () => {
    const few = opened({ maxWaiting: 2 }).lanes;
    const task = { lane: "a", number: 0 };
    expect([1, 2, 3, 4].map(() => few.add("a", task, 1))).toEqual([null, null, null, "too-many-waiting"]);
    // A task of a free lane does not wait.
    expect([1, 2].map(() => few.add("b", { lane: "b", number: 0 }, 1))).toEqual([null, "too-many-waiting"]);
    const { lanes } = opened();
    expect([1, 5000, 1].map((bytes) => lanes.add("a", task, bytes))).toEqual([null, null, "too-many-waiting"]);
    expect(lanes.clear()).toHaveLength(1);
    expect(lanes.add("a", task, 1)).toBe(null);
  });

  test("a task that did not run ends nothing", () => {
    const { lanes, started } = opened({ maxRunning: 1 });
    lanes.add("a", { lane: "a", number: 0 }, 1);
    lanes.add("b", { lane: "b", number: 1 }, 1);
    lanes.finish("b");
    lanes.finish("unknown");
    expect(started).toHaveLength(1);
  });
});
