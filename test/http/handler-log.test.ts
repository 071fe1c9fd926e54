import { afterEach, expect, test, vi } from "vitest";
import { createFetchHandler } from "../../src/fetch.ts";
import type { EmbeddedHandler, HandlerOptions } from "../../src/fetch.ts";
import { createHandler } from "../../src/server.ts";
import type { TruewireConfig } from "../../src/server.ts";

// A handler logged nothing: a program's error was a 500 whose text said that the log says why.

const failing: TruewireConfig = {
  models: [
    {
      kind: "program",
      name: "broken",
      program: ({ messages }) => {
        throw new Error(`boom at ${String(messages[0]?.content)}`);
      },
    },
  ],
};

const ask = async (handler: EmbeddedHandler, model = "broken", more: object = {}): Promise<number> => {
  const body = JSON.stringify({ model, messages: [{ role: "user", content: "a secret prompt" }], ...more });
  const headers = { "content-type": "application/json" };
  const response = await handler.fetch(new Request("http://x/v1/chat/completions", { method: "POST", headers, body }));
  await response.text();
  return response.status;
};

function watchConsole(): string[] {
  const lines: string[] = [];
  vi.spyOn(console, "error").mockImplementation((line: unknown) => void lines.push(String(line)));
  return lines;
}

afterEach(() => void vi.restoreAllMocks());

test.each([
  ["createHandler", createHandler],
  ["createFetchHandler", createFetchHandler],
])("%s logs each failure once, without what the client wrote", async (_, create) => {
  const lines = watchConsole();
  const handler = create(failing);
  expect(await ask(handler)).toBe(500);
  await ask(handler, "broken", { stream: true });
  // A line can come a moment after the end of its answer.
  await expect.poll(() => lines).toHaveLength(2);
  for (const line of lines) {
    expect(line).toMatch(/^truewire: failed \{.*"model":"broken".*"status":500.*handler-log\.test\.ts/);
    expect(line).not.toMatch(/secret|\n/);
  }
  // Mistakes of clients are not the operator's.
  expect(await ask(handler, "unknown")).toBe(404);
  expect(lines).toHaveLength(2);
  await handler.close();
});

test("a model that cannot be opened is logged once with its reason, though every request tries it again", async () => {
  const lines = watchConsole();
  const handler = createHandler({ models: [{ kind: "local", path: "/nowhere/model.gguf" }] });
  await expect(handler.ready()).rejects.toThrow("does not exist");
  expect(lines).toEqual([]);
  expect(await ask(handler, "model")).toBe(503);
  expect(await ask(handler, "model")).toBe(503);
  await expect.poll(() => lines.filter((line) => line.startsWith("truewire: failed "))).toHaveLength(2);
  expect(lines.filter((line) => line.includes("/nowhere/model.gguf does not exist"))).toHaveLength(1);
  await handler.close(0);
});

test("another log gets every level in place of the console; false turns it off", async () => {
  const lines = watchConsole();
  const seen: string[] = [];
  const write =
    (level: string) =>
    (_: object, message: string): void =>
      void seen.push(`${level} ${message}`);
  const log: HandlerOptions["log"] = {
    debug: write("debug"),
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
  };
  const own = createHandler(failing, { log });
  await ask(own);
  await ask(own, "unknown");
  await own.close();
  expect(seen).toEqual([
    "debug the key of this installation is random: values that clients return are valid until it stops",
    "debug received",
    "error failed",
    "debug received",
    "info refused",
  ]);
  const silent = createHandler(failing, { log: false });
  await ask(silent);
  await silent.close();
  expect(lines).toEqual([]);
});
