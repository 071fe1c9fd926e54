import fc from "fast-check";
import { expect, test } from "vitest";
import type { Message, Tool } from "../../wire/core/message.ts";
import { areReordered, comparePrompts, diffMessages, diffParameters, diffTexts, diffTools } from "./request-diff.ts";
import type { Change } from "./request-diff.ts";
import type { ParsedRequest } from "./readable-request.ts";

const words = fc
  .array(fc.constantFrom("fox", "dog", "the", "a\nb", "\n", "x"), { maxLength: 6 })
  .map((all) => all.join(" "));
const message: fc.Arbitrary<Message> = fc.oneof(
  words.map((content): Message => ({ role: "user", content })),
  words.map((content): Message => ({ role: "system", content })),
  words.map((text): Message => ({ role: "user", content: [{ type: "text", text, cacheMinutes: 5 }] })),
  words.map((text): Message => ({
    role: "assistant",
    content: [{ type: "tool-call", id: `call_${text.length}`, name: "look", arguments: JSON.stringify({ text }) }],
  })),
);
const messages = fc.array(message, { maxLength: 12 });

/** What a list was before, and is after its changes. */
function sides<T>(changes: readonly Change<T>[]): { before: T[]; after: T[] } {
  return {
    before: changes.flatMap((change) => ("before" in change ? [change.before] : [])),
    after: changes.flatMap((change) => ("after" in change ? [change.after] : [])),
  };
}

test("the changes of messages, applied to the old ones, give the new ones; taken back, the old ones", () => {
  fc.assert(
    fc.property(messages, messages, messages, (start, before, after) => {
      const [old, now] = [
        [...start, ...before],
        [...start, ...after],
      ];
      const changes = diffMessages(old, now);
      expect(sides(changes)).toEqual({ before: old, after: now });
      for (const change of changes) {
        if ("at" in change) expect(now[change.at]).toBe(change.after);
        if ("from" in change) expect(old[change.from]).toBe(change.before);
        if (change.kind === "changed") expect(change.before.role).toBe(change.after.role);
      }
    }),
  );
});

test("the changes of a text, applied to the old one, give the new one", () => {
  const text = fc.oneof(words, fc.string({ unit: "binary" }));
  fc.assert(
    fc.property(text, text, text, text, (start, before, after, end) => {
      const [old, now] = [start + before + end, start + after + end];
      const changes = diffTexts(old, now);
      const joined = (left: string): string =>
        changes.flatMap(({ kind, text }) => (kind === left ? [] : [text])).join("");
      expect([joined("added"), joined("removed")]).toEqual([old, now]);
    }),
  );
});

/** What parameters are, each value by its path. */
function leaves(parameters: readonly (readonly [string, unknown])[]): Map<string, unknown> {
  return new Map(diffParameters([], parameters).map(({ name, after }) => [name, JSON.stringify(after)]));
}

test("the changes of tools and parameters, applied to the old ones, give the new ones", () => {
  const tools = fc.uniqueArray(
    fc.record({ name: fc.constantFrom("a", "b", "c", "d"), description: words }).map((tool): Tool => tool),
    { selector: ({ name }) => name },
  );
  const parameters = fc
    .dictionary(fc.constantFrom("n", "stop", "seed"), fc.jsonValue())
    .map((all) => Object.entries(all));
  fc.assert(
    fc.property(tools, tools, parameters, parameters, (before, after, old, now) => {
      const changes = diffTools(before, after);
      expect(sides(changes).after).toEqual(after);
      expect(new Set(sides(changes).before)).toEqual(new Set(before));
      const applied = leaves(old);
      for (const change of diffParameters(old, now))
        if ("after" in change) applied.set(change.name, JSON.stringify(change.after));
        else applied.delete(change.name);
      expect(applied).toEqual(leaves(now));
    }),
  );
});

// Claude Code moves its cache_control marks with each turn: every message that had one was shown as changed.
test("a mark of what is to be cached changes no message, nor does a string in place of its only text", () => {
  const before: Message[] = [{ role: "user", content: [{ type: "text", text: "hi", cacheMinutes: 5 }], path: "a" }];
  const after: Message[] = [{ role: "user", content: "hi", path: "b" }];
  expect(diffMessages(before, after).map(({ kind }) => kind)).toEqual(["same"]);
});

test("a message in other words is changed; one about something else is another message", () => {
  const old: Message[] = [{ role: "system", content: "Today is Monday and you help with foxes." }];
  const similar: Message[] = [{ role: "system", content: "Today is Tuesday and you help with foxes." }];
  const other: Message[] = [{ role: "system", content: "Write titles." }];
  expect(diffMessages(old, similar).map(({ kind }) => kind)).toEqual(["changed"]);
  expect(diffMessages(old, other).map(({ kind }) => kind)).toEqual(["added", "removed"]);
});

test("the first difference of two prompts has the cause that the cache's diagnosis names", () => {
  const request = (system: string, more: readonly Message[] = []): ParsedRequest => ({
    id: "req_1",
    model: "m",
    prompt: {
      kind: "chat",
      messages: [{ role: "system", content: system }, { role: "user", content: "Tell me of foxes." }, ...more],
      template: {},
    },
    sampling: {},
    limits: {},
    wantsUsage: false,
    stream: false,
    extra: {},
  });
  const answer: Message = { role: "assistant", content: "They are red." };
  const dated = (day: string): string => `Today is 2026-01-${day}. You help people who know little of foxes.`;
  const moved = comparePrompts(request(dated("01")), request(dated("02")));
  expect(moved).toMatchObject({ continues: false, sharedMessages: 0, broken: { cause: "date", where: "messages[0]" } });
  const grown = comparePrompts(
    request(dated("01")),
    request(dated("01"), [answer, { role: "user", content: "More." }]),
  );
  expect(grown).toEqual({ continues: true, sharedMessages: 2, broken: null });
  const other = comparePrompts(request(dated("01")), { ...request(dated("01")), tools: [{ name: "look" }] });
  expect(other).toMatchObject({ continues: false, broken: { cause: "tool-added" } });
});

// Codex writes the members of client_metadata in another order each time.
test("the order of an object's members is no change of a parameter, and a member is named with its path", () => {
  const before = [["reasoning", { effort: "low", summary: { kind: "auto" } }]] as const;
  const after = [["reasoning", { summary: { kind: "none" }, effort: "low" }]] as const;
  expect(diffParameters(before, after)).toEqual([{ name: "reasoning.summary.kind", before: "auto", after: "none" }]);
});

test("tools in another order are found", () => {
  const [a, b] = [{ name: "a" }, { name: "b" }];
  expect(areReordered(diffTools([a, b], [b, a]))).toBe(true);
  expect(areReordered(diffTools([a, b], [a, { name: "c" }, b]))).toBe(false);
});
