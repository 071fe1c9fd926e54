import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { joinSystemMessages, systemMessagesAsUser } from "./place-system-messages.ts";
import type { RoleAndContent } from "./place-system-messages.ts";

interface Said extends RoleAndContent {
  readonly role: string;
  readonly content: unknown;
}

const said = (role: string, content: unknown): Said => ({ role, content });

function place(messages: readonly Said[]): { placed: readonly Said[]; noted: string[] } {
  const noted: string[] = [];
  const joined = joinSystemMessages(messages, () => noted.push("system-joined"));
  return { placed: systemMessagesAsUser(joined, () => noted.push("system-as-user")), noted };
}

describe("system messages", () => {
  test("that stand at the beginning alone are left as they are", () => {
    const messages = [said("system", "S"), said("user", "U"), said("assistant", "A")];
    expect(place(messages)).toEqual({ placed: messages, noted: [] });
    expect(place(messages).placed).toBe(messages);
  });

  test("of the first turn are one, at the beginning", () => {
    const text = { type: "text", text: "S3" };
    const messages = [said("system", "S1"), said("system", "S2"), said("user", "U"), said("system", [text])];
    expect(place(messages)).toEqual({
      placed: [said("system", "S1\n\nS2\n\nS3"), said("user", "U")],
      noted: ["system-joined", "system-joined"],
    });
    expect(place([said("user", "U"), said("system", "S")]).placed).toEqual([said("system", "S"), said("user", "U")]);
  });

  test("of later turns are marked texts of the user's, joined with what the user says", () => {
    const tag = (text: string): string => `<system-reminder>\n${text}\n</system-reminder>`;
    const image = { type: "image_url", image_url: { url: "data:" } };
    const begin = [said("system", "S"), said("user", "U"), said("assistant", "A")];
    expect(place([...begin, said("user", "U2"), said("system", "R"), said("system", "Q")])).toEqual({
      placed: [...begin, said("user", `U2\n\n${tag("R")}\n\n${tag("Q")}`)],
      noted: ["system-as-user", "system-as-user"],
    });
    expect(place([...begin, said("system", "R"), said("user", [image])]).placed.at(-1)).toEqual(
      said("user", [{ type: "text", text: tag("R") }, image]),
    );
    expect(place([...begin, said("tool", "T"), said("system", "R"), said("assistant", "B")]).placed.slice(3)).toEqual([
      said("tool", "T"),
      said("user", tag("R")),
      said("assistant", "B"),
    ]);
  });

  test("never part the results of one turn's calls", () => {
    const begin = [said("user", "U"), said("assistant", "calls")];
    const roles = place([
      ...begin,
      said("system", "R"),
      said("tool", "1"),
      said("system", "Q"),
      said("tool", "2"),
    ]).placed;
    expect(roles.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "tool", "user"]);
  });
});

const message = fc.record({
  role: fc.constantFrom("system", "developer", "user", "assistant", "tool"),
  content: fc.oneof(
    fc.stringMatching(/^[a-z]{1,6}$/),
    fc.array(fc.record({ type: fc.constant("text"), text: fc.stringMatching(/^[a-z]{1,6}$/) }), { maxLength: 3 }),
  ),
});
const isInstruction = ({ role }: Said): boolean => role === "system" || role === "developer";
const lettersOf = (messages: readonly Said[]): string =>
  [...JSON.stringify(messages.map(({ content }) => content)).replaceAll(/"(type|text)":?|system-reminder|\\n/g, "")]
    .filter((letter) => /[a-z]/.test(letter))
    .toSorted()
    .join("");

test("for any conversation, one system message is left at most, at the beginning, and no text is lost", () => {
  fc.assert(
    fc.property(fc.array(message, { maxLength: 12 }), (messages) => {
      const { placed } = place(messages);
      expect(placed.slice(1).some(isInstruction)).toBe(false);
      const plain = (list: readonly Said[]): string => lettersOf(list).replaceAll(/\s/g, "");
      const types = (list: readonly Said[]): readonly Said[] =>
        list.map((one) => ({
          ...one,
          content: Array.isArray(one.content)
            ? (one.content as { text: string }[]).map(({ text }) => text)
            : one.content,
        }));
      expect(plain(types(placed))).toBe(plain(types(messages)));
      expect(place(placed).placed).toBe(placed);
    }),
  );
});

// Moving every system message to the beginning changed the prompt's start with each of them, and no server found it in its cache.
test("for any conversation that goes on after an answer, what was sent before is the beginning of what is sent", () => {
  fc.assert(
    fc.property(fc.array(message, { maxLength: 8 }), fc.array(message, { maxLength: 8 }), (before, after) => {
      const asked = [...before, said("user", "x")];
      const later = [...asked, said("assistant", "y"), ...after];
      const { placed } = place(asked);
      expect(place(later).placed.slice(0, placed.length)).toEqual(placed);
    }),
  );
});

test("a long row of system messages takes as many steps as messages", () => {
  const row = [
    said("user", "U"),
    said("assistant", "A"),
    ...Array.from({ length: 50_000 }, () => said("system", [{ type: "image" }])),
  ];
  expect(place(row).placed).toHaveLength(3);
});
