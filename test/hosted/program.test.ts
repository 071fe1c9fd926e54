import { expect, test } from "vitest";
import { ToolThreads } from "../../src/serve/hosted/program/tool-threads.ts";
import { resultOf } from "../../src/serve/hosted/program/results.ts";

const runCode = new URL("run-code.mjs", import.meta.url).pathname;

// Calls waited in the order in which they came, so that the calls of one client held up those of all others.
test("where calls wait for a thread, owners take turns", async () => {
  const threads = new ToolThreads(runCode);
  try {
    const ended: string[] = [];
    const run = (owner: string, code: string): Promise<void> =>
      threads
        .run(
          { tool: "code_interpreter", arguments: { code }, options: {}, declaration: {} },
          owner,
          new AbortController().signal,
        )
        .then(() => void ended.push(owner));
    const calls = [...Array.from({ length: 40 }, () => run("a", "1+1")), run("b", "1+1"), run("c", "1+1")];
    await Promise.all(calls);
    // Eight run, and a call of each other owner comes before most of those that waited before it.
    expect(Math.max(ended.indexOf("b"), ended.indexOf("c"))).toBeLessThan(30);
    expect(ended).toHaveLength(42);
  } finally {
    await threads.close();
  }
});

// A call that was cancelled while its thread started kept the thread for ever.
test("calls that are cancelled, while they wait or while their thread starts, leave their places to the next ones", async () => {
  const threads = new ToolThreads(runCode);
  try {
    const input = { tool: "code_interpreter", arguments: { code: "hang" }, options: {}, declaration: {} };
    const hanging = Array.from({ length: 8 }, () => new AbortController());
    const open = Promise.allSettled(hanging.map(({ signal }) => threads.run(input, "a", signal)));
    const leaving = new AbortController();
    const waiting = threads.run(input, "a", leaving.signal);
    const next = threads.run({ ...input, arguments: { code: "1+2" } }, "a", new AbortController().signal);
    leaving.abort(new Error("left"));
    await expect(waiting).rejects.toThrow("left");
    for (const each of hanging) each.abort();
    expect((await open).map(({ status }) => status)).toEqual(hanging.map(() => "rejected"));
    expect(await next).toMatchObject({ stdout: "3" });
  } finally {
    await threads.close();
  }
});

test("an image is a data URL within the limit; what is none is a failure with what was expected", () => {
  const url = "data:image/png;base64,AAAA";
  expect(resultOf("image_generation", url, 100)).toEqual({ kind: "image", url });
  expect(resultOf("image_generation", { image: url, revisedPrompt: "A cat", partialImages: [url, 7] }, 100)).toEqual({
    kind: "image",
    url,
    revisedPrompt: "A cat",
    partial: [url],
  });
  expect(resultOf("image_generation", url, 10)).toMatchObject({ code: "too-large" });
  for (const value of ["https://a.example/cat.png", { image: null }, null, "data:text/html;base64,AAAA"])
    expect(resultOf("image_generation", value, 100)).toMatchObject({
      code: "protocol-error",
      message: expect.stringContaining("expected a data URL such as data:image/png;base64,…"),
    });
});
