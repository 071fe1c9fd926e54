import { createHash } from "node:crypto";
import { startAnthropic } from "./anthropic.ts";
import { lastUserText, listOf, objectOf, sessionDouble, textOf } from "./chat-server.ts";
import type { Double, Json } from "./chat-server.ts";
import { startOpenAi } from "./openai.ts";
import { placeOf, Sessions } from "./task.ts";
import type { Conversation } from "./task.ts";

/* The doubles of OpenAI's Responses API and of Anthropic's Messages API, with the task of all sessions. */

/** OpenAI's: encrypted reasoning belongs to its account. */
export async function startOpenAiSession(account: string): Promise<Double> {
  const sessions = new Sessions();
  const double = await startOpenAi({
    key: createHash("sha256").update(account).digest(),
    turn({ input }) {
      const { calls, ...step } = sessions.next(readItems(input), input);
      return { ...step, calls: calls.map(({ name, input: sent }) => ({ name, arguments: JSON.stringify(sent) })) };
    },
  });
  return sessionDouble(double, sessions);
}

/** Anthropic's: signatures belong to the account of the key. */
export async function startAnthropicSession(key: string, account = key): Promise<Double> {
  const sessions = new Sessions();
  const double = await startAnthropic({
    accounts: { [key]: account },
    answer(body) {
      const conversation = readBlocks(body);
      const { reasoning, ...step } = sessions.next(conversation, withoutMarks(body["messages"]));
      const { turn } = placeOf(conversation.userText);
      // The wait of turn 3 follows thinking without a text.
      const redacted = turn === 3 && conversation.results === 3;
      return { ...step, ...(reasoning !== undefined && { thinking: reasoning, redacted }) };
    },
  });
  return sessionDouble(double, sessions, () => double.requests.length);
}

/** Marks of the cache move from turn to turn, and are no part of the prompt. */
function withoutMarks(messages: unknown): unknown {
  return JSON.parse(JSON.stringify(messages, (name, value: unknown) => (name === "cache_control" ? undefined : value)));
}

function readItems(input: readonly Json[]): Conversation {
  const last = lastUserText(input);
  const since = input.slice(last + 1);
  return {
    userText: textOf(input[last]?.["content"]),
    calls: since
      .filter(({ type }) => type === "function_call")
      .map(({ name, arguments: text }) => ({ name: String(name), input: objectOf(JSON.parse(String(text) || "{}")) })),
    results: since.filter(({ type }) => type === "function_call_output").length,
  };
}

function readBlocks(body: Json): Conversation {
  const messages = listOf(body["messages"]);
  const last = lastUserText(messages);
  const blocks = messages.slice(last + 1).flatMap(({ content }) => listOf(content));
  return {
    userText: textOf(messages[last]?.["content"]),
    calls: blocks
      .filter(({ type }) => type === "tool_use")
      .map(({ name, input }) => ({ name: String(name), input: objectOf(input) })),
    results: blocks.filter(({ type }) => type === "tool_result").length,
  };
}
