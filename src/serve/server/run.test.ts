import fc from "fast-check";
import { expect, test } from "vitest";
import { Run } from "./run.ts";

const limit = 1000;
const stream = (of: number = limit): Run => new Run({ headers: {}, aloneMs: 1_000_000, limit: of });

/** What happens to a text: a chunk is added, or a reader comes, reads or leaves. */
const steps = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant("add" as const), length: fc.integer({ min: 1, max: 300 }) }),
    fc.record({ kind: fc.constantFrom("come" as const, "read" as const, "leave" as const), reader: fc.nat(2) }),
  ),
  { maxLength: 200 },
);

test("readers get each chunk once and in order, or are told that it is not kept; no more is kept than the limit and what is unread", async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (all) => {
      const run = stream();
      let mayWrite = true;
      const readers: ({ readonly events: AsyncIterator<string>; next: number } | undefined)[] = [];
      const added: string[] = [];
      for (const step of all) {
        if (step.kind === "add") {
          // A writer waits before it writes more.
          if (!mayWrite) continue;
          added.push(`${added.length},`.padEnd(step.length, ".") + "\n\n");
          const wait = run.write(added.at(-1) ?? "");
          mayWrite = wait === undefined;
          void wait?.then(() => (mayWrite = true));
          expect(run.size).toBeLessThanOrEqual(2 * limit + 2 * 342);
          continue;
        }
        const reader = readers[step.reader];
        if (step.kind === "come" && !reader) {
          const from = Math.max(0, run.next - step.reader * 2);
          readers[step.reader] = { events: run.events(from), next: from };
        } else if (step.kind === "leave") {
          await reader?.events.return?.();
          readers[step.reader] = undefined;
        } else if (step.kind === "read" && reader && reader.next < run.next) {
          const { first, next } = run;
          if (reader.next < first) {
            await expect(reader.events.next()).rejects.toMatchObject({ failure: { status: 410 } });
            readers[step.reader] = undefined;
            continue;
          }
          expect((await reader.events.next()).value).toBe(added.slice(reader.next, next).join(""));
          reader.next = next;
        }
      }
      expect(run.text()).toBe(added.slice(run.first).join(""));
      run.stop();
    }),
    { numRuns: 300 },
  );
});

test("a writer that waits goes on when the reader has read, has left, or has been dismissed", async () => {
  for (const act of [
    async (reader: AsyncIterator<string>) => void (await reader.next()),
    async (reader: AsyncIterator<string>) => void (await reader.return?.()),
    async (_: AsyncIterator<string>, run: Run) => void run.dismissReaders(),
    async (_: AsyncIterator<string>, run: Run) => run.stop(),
  ]) {
    const run = stream(4_000_000);
    const reader = run.events();
    const wait = run.write("x".repeat(300_000));
    expect(wait).toBeDefined();
    await act(reader, run);
    await wait;
    expect(run.write("y")).toBeUndefined();
    run.stop();
  }
});

test("a step that waits ends when its reader leaves", async () => {
  const reader = new Run().events();
  const step = reader.next();
  await reader.return?.();
  expect(await step).toEqual({ done: true, value: undefined });
});

test("a response in the background keeps all of its events, however slow its readers are", async () => {
  const run = new Run();
  const reader = run.events();
  for (let number = 0; number < 100; number++) expect(run.write("x".repeat(100_000))).toBeUndefined();
  run.stop();
  run.end();
  expect(run.first).toBe(0);
  let length = 0;
  for await (const text of reader) length += text.length;
  expect(length).toBe(10_000_000);
});
