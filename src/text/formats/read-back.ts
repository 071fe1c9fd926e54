import { accumulate } from "../../wire/core/accumulate.ts";
import type { Message, Tool } from "../../wire/core/message.ts";
import type { Format } from "./format.ts";
import { TextReader } from "./text-reader.ts";

/** Renders a conversation with a model's chat template, optionally with the generation prompt. Throws what the template throws. */
export type Render = (messages: readonly Message[], tools: readonly Tool[], generationPrompt: boolean) => string;

/** The contents of the sentinel conversation: words that occur nowhere else in a prompt. */
export const sentinel = {
  name: "sentinel_tool",
  otherName: "sentinel_other",
  id: "sentinel0",
  otherId: "sentinel1",
  keys: ["sentinel_city", "sentinel_count"],
  values: ["Sentinel Town", 4711],
  question: "What does the sentinel say?",
  answer: "The sentinel is well.",
  reasoning: "Let me think of the sentinel.",
  result: "RESULT_OF_SENTINEL",
} as const;

const parameters = {
  type: "object",
  properties: {
    [sentinel.keys[0]]: { type: "string", description: "A city" },
    [sentinel.keys[1]]: { type: "integer", description: "A number" },
  },
  required: [...sentinel.keys],
};
const sentinelTools: readonly Tool[] = [
  { name: sentinel.name, description: "A sentinel", parameters },
  { name: sentinel.otherName, description: "Another sentinel", parameters },
];
const sentinelArguments: Readonly<Record<string, unknown>> = {
  [sentinel.keys[0]]: sentinel.values[0],
  [sentinel.keys[1]]: sentinel.values[1],
};

const question: Message = { role: "user", content: sentinel.question };

/**
 * The assistant's turn with one or two sentinel calls as a template renders it, followed by their results or (`answered` false) by nothing.
 * null if the template does not render it.
 */
export function renderCalls(render: Render, calls: 1 | 2, answered = true): string | null {
  const ids = [sentinel.id, sentinel.otherId].slice(0, calls);
  const names = [sentinel.name, sentinel.otherName];
  const made = ids.map((id, i) => ({
    type: "tool-call" as const,
    id,
    name: names[i] ?? sentinel.name,
    arguments: JSON.stringify(sentinelArguments),
  }));
  const results: Message[] = made.map(({ id, name }) => ({
    role: "tool",
    content: sentinel.result,
    toolCallId: id,
    name,
  }));
  return renderTurn(render, [{ role: "assistant", content: made }, ...(answered ? results : [])]);
}

/** The assistant's turn and what follows it. null if the template refuses or omits it. */
export function renderTurn(render: Render, turn: readonly Message[]): string | null {
  try {
    const before = render([question], sentinelTools, true);
    const after = render([question, ...turn], sentinelTools, false);
    let at = 0;
    while (at < before.length && before[at] === after[at]) at++;
    // Not from inside a marker whose beginning is the same in both.
    const marker = after.lastIndexOf("<", at);
    if (marker >= 0 && !/[>\s]/.test(after.slice(marker, at))) at = marker;
    return after.slice(at);
  } catch {
    return null;
  }
}

/** Whether a format reads the sentinel calls, and no others, from what a template rendered. */
export function readsBack(format: Format, turn: string, calls: 1 | 2 = 1): boolean {
  const reader = new TextReader({
    format,
    choice: 0,
    newCallId: () => "call",
    tools: sentinelTools,
  });
  const { toolCalls = [] } = accumulate([...reader.push(turn), ...reader.end()]).choices[0] ?? {};
  const names = toolCalls.map((call) => call.name).join(" ");
  return (
    names === [sentinel.name, sentinel.otherName].slice(0, calls).join(" ") &&
    toolCalls.every((call) => call.status === "succeeded" && sameArguments(call.arguments))
  );
}

function sameArguments(json: string): boolean {
  try {
    const value: unknown = JSON.parse(json);
    if (typeof value !== "object" || value === null) return false;
    const entries = Object.entries(value);
    return entries.length === sentinel.keys.length && entries.every(([key, part]) => part === sentinelArguments[key]);
  } catch {
    return false;
  }
}
