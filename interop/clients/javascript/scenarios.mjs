/*
 * What every client program in this folder does, as ../python/scenarios.py says it: six scenarios, one JSON line for each on standard output.
 * Node runs the TypeScript of the tests as it is.
 */
import { randomUUID } from "node:crypto";
import { runSession } from "../../../test/sessions/session.ts";

export const { TRUEWIRE_URL: url, TRUEWIRE_MODEL: model, TRUEWIRE_KEY: apiKey } = process.env;

export const greeting = "Hello from Truewire.";
export const slowly = "Slowly, please.";
export const noSuchModel = "no-such-model";
/** What the tool get_weather answers, and what the model says then. */
export const weather = "21 degrees";
export const result = `The result is ${weather}.`;

/** A text that gets status 503 the first time, and an answer the second time. */
export const failsOnce = () => `503 once: ${randomUUID()}`;

export function equal(found, expected, what = "text") {
  if (found === expected) return;
  throw new Error(`${what}: expected ${JSON.stringify(expected)}, found ${JSON.stringify(found)}`);
}

/**
 * Runs the scenarios in order; each returns its detail or fails with an exception. Then a session of four turns with tools over each model of
 * `TRUEWIRE_SESSIONS`, as the tests in test/sessions do. `client`: a `SessionClient` of these tests.
 */
export async function run(scenarios, client) {
  for (const [scenario, play] of Object.entries(scenarios)) {
    await play().then(
      (detail) => report(scenario, true, detail),
      (error) => report(scenario, false, `${error?.name ?? typeof error}: ${error?.message ?? JSON.stringify(error)}`),
    );
  }
  for (const name of JSON.parse(process.env.TRUEWIRE_SESSIONS ?? "[]")) {
    const { turnsDone, turnsTried, problem } = await runSession(client, url, Array(4).fill(name));
    const turns = `${turnsDone} of ${turnsTried} turns`;
    report(`session over ${name}`, problem === undefined, problem === undefined ? turns : `${turns}: ${problem}`);
  }
}

function report(scenario, ok, detail) {
  process.stdout.write(`${JSON.stringify({ scenario, ok, detail: String(detail).slice(0, 2000) })}\n`);
}
