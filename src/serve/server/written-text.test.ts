import fc from "fast-check";
import { expect, test } from "vitest";
import { WrittenText } from "./written-text.ts";

const limit = 1000;

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
      const text = new WrittenText(limit);
      const readers: ({ readonly events: AsyncIterator<string>; next: number } | undefined)[] = [];
      const added: string[] = [];
      for (const step of all) {
        if (step.kind === "add") {
          // A writer waits before it writes more.
          if (text.drain()) continue;
          added.push(`${added.length},`.padEnd(step.length, "."));
          text.add(added.at(-1) ?? "");
          expect(text.size).toBeLessThanOrEqual(2 * limit + 2 * 340);
          continue;
        }
        const reader = readers[step.reader];
        if (step.kind === "come" && !reader) {
          const from = Math.max(0, text.next - step.reader * 2);
          readers[step.reader] = { events: text.events(from), next: from };
        } else if (step.kind === "leave") {
          await reader?.events.return?.();
          readers[step.reader] = undefined;
        } else if (step.kind === "read" && reader && reader.next < text.next) {
          const { first, next } = text.state;
          if (reader.next < first) {
            await expect(reader.events.next()).rejects.toMatchObject({ failure: { status: 410 } });
            continue;
          }
          expect((await reader.events.next()).value).toBe(added.slice(reader.next, next).join(""));
          reader.next = next;
        }
      }
      expect(text.whole()).toBe(added.slice(text.state.first).join(""));
    }),
    { numRuns: 300 },
  );
});

test("a writer that waits goes on when the reader has read, has left, or has been dismissed", async () => {
  for (const act of [
    async (reader: AsyncIterator<string>) => void (await reader.next()),
    async (reader: AsyncIterator<string>) => void (await reader.return?.()),
    async (_: AsyncIterator<string>, text: WrittenText) => text.dismissReaders(),
    async (_: AsyncIterator<string>, text: WrittenText) => text.clear(),
  ]) {
    const text = new WrittenText(4_000_000);
    const reader = text.events();
    text.add("x".repeat(300_000));
    const drained = text.drain();
    expect(drained).toBeDefined();
    await act(reader, text);
    await drained;
    expect(text.drain()).toBeUndefined();
  }
});

test("a step that waits ends when its reader leaves", async () => {
  const reader = new WrittenText().events();
  const step = reader.next();
  await reader.return?.();
  expect(await step).toEqual({ done: true, value: undefined });
});
