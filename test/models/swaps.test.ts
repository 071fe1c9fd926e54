import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../support/scripted-engine.ts";
import { ask, serveModels, small, told } from "./support.ts";
import type { TestServer } from "./support.ts";

let server: TestServer;
beforeAll(async () => {
  const models = ["a", "b", "c"].map((name) => `{ kind: local, path: ${name}.gguf, load: lazy, ${small} }`);
  // About 160 MiB each: room for one at a time.
  server = await serveModels(models, ["memory: 200MiB", "hold: 50ms", "keepAlive: 100ms", "logLevel: info"]);
});
afterAll(() => server.end());

const plain = "The quick brown fox jumps over the lazy dog.";

interface Health {
  readonly engines: readonly { readonly name: string; readonly state: string }[];
}

test("many clients, three models, room for one: no answer is cut, and every client gets its own", async () => {
  let mostLoaded = 0;
  const watch = setInterval(() => {
    void fetch(`${server.url}/health`)
      .then(async (response) => (await response.json()) as Health)
      .then(({ engines }) => {
        mostLoaded = Math.max(mostLoaded, engines.filter(({ state }) => state === "ready").length);
      })
      .catch(() => {});
  }, 50);
  const names = ["a", "b", "c"];
  const client = async (number: number): Promise<void> => {
    for (let round = 0; round < 3; round++) {
      const model = names[(number + round) % 3] ?? "a";
      if (number % 4 === 3) {
        // It leaves, sometimes while it waits and sometimes in the middle of an answer.
        const controller = new AbortController();
        setTimeout(() => controller.abort(), 200 * (number + round));
        await ask(server.url, model, "endless", { stream: true }, controller.signal)
          .then((response) => response.text())
          .catch(() => {});
      } else if (number % 2 === 0) {
        const response = await ask(server.url, model, "plain", { stream: true });
        expect(response.status).toBe(200);
        expect(told(await response.text())).toEqual({ text: plain, finish: "stop", last: "data: [DONE]" });
      } else {
        // Long enough that the others wait for its end.
        const response = await ask(server.url, model, "endless", { max_tokens: 300, stream: true });
        const { text, finish, last } = told(await response.text());
        expect({ finish, last, isLong: text.length > 300 }).toEqual({
          finish: "length",
          last: "data: [DONE]",
          isLong: true,
        });
      }
    }
  };
  await Promise.all(Array.from({ length: 12 }, (_, number) => client(number)));
  clearInterval(watch);
  expect(mostLoaded).toBe(1);
  expect(server.stderr()).not.toMatch(/"level":50/);
});

test("a stream that waits for its model is kept alive, and starts when the model is there", async () => {
  const endless = new AbortController();
  const other = await ask(server.url, "a", "endless", { stream: true }, endless.signal);
  const reader = other.body?.getReader();
  await reader?.read();
  const waiting = ask(server.url, "b", "plain", { stream: true });
  // Its model needs the room of one that answers: nothing is taken from that.
  const response = await waiting;
  const text = response.text();
  await until(
    async () => (await (await fetch(`${server.url}/health`)).text()).includes('"wanted":true'),
    "the first model is loaded, and goes when its answer has ended",
  );
  endless.abort();
  const stream = await text;
  expect(stream.match(/^: /gm)?.length ?? 0).toBeGreaterThan(1);
  expect(told(stream)).toEqual({ text: plain, finish: "stop", last: "data: [DONE]" });
});
