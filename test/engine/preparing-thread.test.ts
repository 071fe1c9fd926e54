import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, expect, test } from "vitest";
import type { PreparingThread as Thread } from "../../src/engines/llama/process/preparing-thread.ts";
import type { ThreadSetup } from "../../src/engines/llama/preparing/thread-messages.ts";

const built = resolve(process.env.TRUEWIRE_DIST ?? "dist", "engines/llama/process/preparing-thread.js");
const { PreparingThread } = (await import(pathToFileURL(built).href)) as { readonly PreparingThread: typeof Thread };

/** Says what it is told, and counts for a long time when that is "slow". */
const template =
  '{% if messages[0].content == "slow" %}{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}{% endif %}{{ messages[0].content }}';

const setup: ThreadSetup = {
  facts: {
    path: "model.gguf",
    architecture: "llama",
    contextSize: 4096,
    chatTemplate: template,
    bosToken: null,
    eosToken: null,
    specialTokens: [],
    markupTokens: [],
    vocabularySize: 300,
    maxTokenLength: 16,
    takes: {},
    fillsInMiddle: false,
  },
};

const lines: string[] = [];
const open: Thread[] = [];
function opened(over: Partial<ThreadSetup> = {}, prepare = 60_000): Thread {
  const limitMs = { prepare, check: 3_000 };
  const thread = new PreparingThread({ setup: { ...setup, ...over }, limitMs, log: (line) => lines.push(line) });
  open.push(thread);
  return thread;
}
afterEach(async () => {
  lines.length = 0;
  await Promise.all(open.splice(0).map((thread) => thread.stop()));
});

function asked(content: string): string[] {
  const prompt = { kind: "chat", messages: [{ role: "user", content }], template: {} };
  const json = JSON.stringify({ prompt, sampling: {}, limits: {} });
  return [json.slice(0, 9), json.slice(9)];
}
const always = (): boolean => true;
const text = (prepared: Awaited<ReturnType<Thread["prepare"]>>): string | undefined => {
  const prompt = prepared?.request.prompts[0];
  return prompt?.type === "spans" ? prompt.spans.map((span) => span.text).join("") : undefined;
};

test("what takes too long is refused, and those behind it are served by a new thread", async () => {
  const thread = opened({}, 2000);
  expect(text(await thread.prepare(asked("first"), always))).toBe("first");
  const slow = thread.prepare(asked("slow"), always);
  const next = thread.prepare(asked("next"), always);
  await expect(slow).rejects.toMatchObject({ failure: { status: 400, kind: "invalid-request" } });
  expect(text(await next)).toBe("next");
  expect(lines).toEqual(["The thread that prepares requests took too long; it is started again."]);
});

test("a thread that fails is an error for the request that it was at; the next one finds a new thread", async () => {
  // Without control tokens to look at, a template cannot be read: the thread fails when it starts.
  const broken = { ...setup.facts, specialTokens: null as unknown as string[] };
  const thread = opened({ facts: broken });
  for (const name of ["one", "two"])
    await expect(thread.prepare(asked(name), always)).rejects.toMatchObject({ failure: { status: 500 } });
  // One line a request at least, and not one after the other for ever while there is nothing to do.
  const told = lines.length;
  expect(told).toBeGreaterThanOrEqual(2);
  // Meanwhile another thread starts and works.
  expect(text(await opened().prepare(asked("first"), always))).toBe("first");
  expect(lines.length).toBe(told);
});

test("whoever left while others were served is passed over", async () => {
  const thread = opened();
  let wanted = true;
  const first = thread.prepare(asked("first"), always);
  const left = thread.prepare(asked("slow"), () => wanted);
  const last = thread.prepare(asked("last"), always);
  wanted = false;
  expect([text(await first), await left, text(await last)]).toEqual(["first", null, "last"]);
});

// A grammar that took ten seconds to make was made to its end though its client had left, and everybody waited for it.
test("whoever leaves ends what is done for them, and those behind are served by a new thread", async () => {
  const thread = opened();
  let wanted = true;
  expect(text(await thread.prepare(asked("first"), always))).toBe("first");
  const left = thread.prepare(asked("slow"), () => wanted);
  const next = thread.prepare(asked("next"), always);
  wanted = false;
  thread.onCancelled();
  expect([await left, text(await next)]).toEqual([null, "next"]);
  expect(lines).toEqual([
    "The thread that prepares requests was at a request whose client has left; it is started again.",
  ]);
});

test("whoever else leaves ends nothing", async () => {
  const thread = opened({}, 2000);
  const slow = thread.prepare(asked("slow"), always);
  const left = thread.prepare(asked("left"), () => false);
  thread.onCancelled();
  await expect(slow).rejects.toMatchObject({ failure: { status: 400 } });
  expect(await left).toBeNull();
});

test("an answer is checked behind the requests that wait", async () => {
  const thread = opened();
  const order: string[] = [];
  const first = thread.prepare(asked("first"), always).then(() => order.push("first"));
  const check = thread.check('{"a":1}', { required: ["b"] }).then((errors) => order.push(`check: ${errors}`));
  const second = thread.prepare(asked("second"), always).then(() => order.push("second"));
  await Promise.all([first, check, second]);
  expect(order).toEqual(["first", "second", "check: #/required must have required property 'b'"]);
});

test("a check that takes too long is given up, and requests are prepared again", async () => {
  const thread = opened();
  const items = JSON.stringify(Array.from({ length: 100_000 }, (_, i) => ({ i })));
  const check = thread.check(items, { uniqueItems: true });
  const next = thread.prepare(asked("next"), always);
  await expect(check).rejects.toThrow("it took more than 3 seconds");
  expect(text(await next)).toBe("next");
});

test("a check that cannot be made says why", async () => {
  await expect(opened().check('"a"', { pattern: "(?=a)" })).rejects.toThrow(/^look-ahead is not supported[^\n]*$/);
});
