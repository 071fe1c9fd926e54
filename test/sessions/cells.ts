import { expect } from "vitest";
import { runSession } from "./session.ts";
import type { Outcome } from "./session.ts";
import type { SessionClient } from "./clients/client.ts";

/** A session of a matrix. */
export interface Cell {
  readonly name: string;
  readonly client: SessionClient;
  /** The model of each turn. */
  readonly models: readonly string[];
  /** The turns of the task; default: 1, 2, … */
  readonly turns?: readonly number[];
}

/** Runs the sessions, several at the same time, as one server has many clients. */
export async function runCells(cells: readonly Cell[], url: string): Promise<Map<string, Outcome>> {
  const outcomes = new Map<string, Outcome>();
  const waiting = [...cells];
  const run = async (): Promise<void> => {
    for (let cell = waiting.shift(); cell; cell = waiting.shift())
      outcomes.set(cell.name, await runSession(cell.client, url, cell.models, cell.turns));
  };
  await Promise.all(Array.from({ length: 8 }, run));
  return outcomes;
}

/** Expects each session to be done, except the known failures, which must fail. `TRUEWIRE_SESSIONS=1` prints what was done. */
export function expectDone(outcomes: ReadonlyMap<string, Outcome>, known: Readonly<Record<string, string>>): void {
  if (process.env["TRUEWIRE_SESSIONS"]) console.log(summary(outcomes));
  const failed = Object.fromEntries(
    [...outcomes].flatMap(([name, { problem }]) => (problem === undefined ? [] : [[name, problem]])),
  );
  const covers = (key: string, name: string): boolean => key === name || name.split(/ \| | → /).includes(key);
  const keys = Object.keys(known);
  const unexpected = Object.entries(failed).filter(([name]) => !keys.some((key) => covers(key, name)));
  expect(Object.fromEntries(unexpected), "sessions that fail").toEqual({});
  const repaired = keys.filter((key) => {
    const covered = [...outcomes.keys()].filter((name) => covers(key, name));
    return covered.length > 0 && covered.every((name) => !(name in failed));
  });
  expect(repaired, "known failures that work now: remove them from known-failures.ts").toEqual([]);
}

/** What was done of what was tried. */
export function summary(outcomes: ReadonlyMap<string, Outcome>): string {
  const all = [...outcomes.values()];
  const sum = (of: (outcome: Outcome) => number): number => all.reduce((total, outcome) => total + of(outcome), 0);
  const done = all.filter(({ problem }) => problem === undefined).length;
  const problems = [...outcomes].flatMap(([name, { problem }]) =>
    problem === undefined ? [] : [`${name} ⇒ ${problem.slice(0, 300)}`],
  );
  return [
    `${done} of ${all.length} sessions, ${sum(({ turnsDone }) => turnsDone)} of ${sum(({ turnsTried }) => turnsTried)} turns`,
    ...problems,
  ].join("\n");
}

/** The smallest share of a prompt's bytes that begins the next prompt of its session. */
export function smallestPrefix(prompts: readonly string[]): number {
  let smallest = 1;
  for (const [at, text] of prompts.entries()) {
    const before = prompts[at - 1]?.slice(0, -1);
    if (before === undefined) continue;
    let same = 0;
    while (same < before.length && before[same] === text[same]) same++;
    smallest = Math.min(smallest, same / before.length);
  }
  return smallest;
}
