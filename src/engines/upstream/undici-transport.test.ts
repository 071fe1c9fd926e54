import { once } from "node:events";
import { expect, test } from "vitest";
import { openTransport } from "./undici-transport.ts";

const { afterReads } = openTransport("http://127.0.0.1:1", { name: "up", urls: [] });

test("the answers that one turn has read are handled together, before anything that their handling starts", async () => {
  const log: string[] = [];
  const handle = (name: string): void => {
    log.push(`${name} handled`);
    void Promise.resolve().then(() => log.push(`${name} written`));
  };
  afterReads(() => handle("a"));
  // Sockets are read in callbacks of their own.
  await Promise.resolve();
  afterReads(() => handle("b"));
  await new Promise(process.nextTick);
  expect(log).toEqual([]);
  while (log.length < 4) await new Promise(setImmediate);
  expect(log).toEqual(["a handled", "b handled", "a written", "b written"]);
});

test("an answer that cannot be handled does not stop the others of its turn", async () => {
  const listeners = process.listeners("unhandledRejection");
  process.removeAllListeners("unhandledRejection");
  try {
    const rejected = once(process, "unhandledRejection");
    let handled = 0;
    afterReads(() => {
      throw new Error("a defect");
    });
    afterReads(() => handled++);
    expect((await rejected)[0]).toEqual(new Error("a defect"));
    expect(handled).toBe(1);
  } finally {
    for (const listener of listeners) process.on("unhandledRejection", listener);
  }
});
