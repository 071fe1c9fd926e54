import { hasRecordings, readRecordings } from "../../../../test/support/recordings.ts";
import { expect, test } from "vitest";
import { hasLogprobsKey } from "./form.ts";

test.each([
  ["gpt-4o-mini", true],
  ["gpt-4.1", true],
  ["gpt-3.5-turbo-0125", true],
  ["qwen3-8b", true],
  ["olmo-2", true],
  ["o1", false],
  ["o4-mini-2025-04-16", false],
  ["gpt-5", false],
  ["gpt-5.1-2025-11-13", false],
  ["gpt-6-astra", false],
  ["gpt-6.1-sol", false],
  ["gpt-daybreak-blue", false],
  ["gpt-audio-2025-08-28", false],
  ["gpt-4o-mini-search-preview", false],
])("%s: %j", (model, has) => {
  expect(hasLogprobsKey(model)).toBe(has);
});

test.skipIf(!hasRecordings("with the classes of OpenAI's models"))(
  "every recorded model since 2024 is of its class",
  () => {
    const wrong: string[] = [];
    let judged = 0;
    for (const kind of ["chat-stream", "chat"]) {
      for (const { body, name, date } of readRecordings(kind)) {
        const json = kind === "chat" ? body : (/^data: (\{.*)$/m.exec(body)?.[1] ?? "{}");
        const { model, choices } = parsed(json);
        // Before 2024 no model had the key.
        if (!choices?.[0] || typeof model !== "string" || (date ?? "") < "2024") continue;
        judged++;
        if (hasLogprobsKey(model) !== "logprobs" in choices[0]) wrong.push(`${name}: ${model}`);
      }
    }
    expect(wrong).toEqual([]);
    expect(judged).toBeGreaterThan(300);
  },
);

function parsed(json: string): { model?: unknown; choices?: readonly object[] } {
  try {
    return JSON.parse(json) as object;
  } catch {
    return {};
  }
}
