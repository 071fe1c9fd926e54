import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { createHandler } from "../../src/server.ts";
import { runCheck } from "../../src/judge/check/probe/run-check.ts";
import { listenInTest } from "../support/close-after-test.ts";
import { answer, ScriptedEngine } from "../support/scripted-engine.ts";
import { serving } from "../support/transports.ts";
import { waitMs } from "../support/hang.ts";

/** Checks a server that says these words: `said` is told how many streamed answers there were before, or undefined for one that is not. */
async function foundAt(said: (streamed: number | undefined) => string): Promise<string[]> {
  let streams = 0;
  let words = "";
  const handler = createHandler(serving(new ScriptedEngine(() => answer([words]))));
  const server = await listenInTest(async (incoming, outgoing) => {
    const body = await text(incoming);
    words = said(/"stream": *true/.test(body) ? streams++ : undefined);
    const headers = { "content-type": "application/json" };
    const response = await handler.fetch(
      new Request(`http://api.test${incoming.url}`, { method: "POST", headers, body }),
    );
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    outgoing.end(await response.text());
  });
  const run = await runCheck({
    url: `${server.url}/v1`,
    model: "scripted",
    only: ["same/text"],
    timeout: waitMs,
    concurrency: 1,
  });
  const twin = run.judged.find(({ id }) => id === "same/text");
  return (twin?.findings ?? []).map(({ found }) => found);
}

// A model whose prompt was cached in part said one word otherwise, once in many runs: its server was accused.
test("a text that differs once is rounding", async () => {
  expect(await foundAt((streamed) => (streamed === 0 ? "There" : "Hello"))).toEqual([]);
});

// Four slots in turn, of which one was the source of the others: each form had the same places again.
test.each([2, 3, 4])("a text that depends on which of %i places a request has is rounding", async (places) => {
  for (let other = 0; other < places; other++) {
    let requests = 0;
    expect(await foundAt(() => (requests++ % places === other ? "There" : "Hello"))).toEqual([]);
  }
});

test("a text that differs again is another one", async () => {
  expect(await foundAt((streamed) => (streamed === undefined ? "Hello" : "There"))).toEqual([
    '"There" streamed, "Hello" not',
  ]);
});

test("nothing can be shown of a model that says something else each time", async () => {
  let answers = 0;
  expect(await foundAt(() => `Hello ${answers++}`)).toEqual([]);
});
