// Compiled by pack.test.ts against the packed package, as a user's file. Each marked line is an error.
import { defineProgram, RequestError } from "truewire";
import type { ProgramContentPart, ProgramMessage, ProgramOptions, ProgramTool } from "truewire";
import type { TruewireConfig } from "truewire/server";

function textOf(message: ProgramMessage): string {
  if (message.content === null) return "";
  if (typeof message.content === "string") return message.content;
  return message.content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

export const images = (parts: readonly ProgramContentPart[]): string[] =>
  parts.flatMap((part) => (part.type === "image_url" ? [part.image_url.url] : []));

export const names = (tools: readonly ProgramTool[] = []): string[] =>
  tools.map((tool) => (tool.type === "function" ? tool.function.name : tool.custom.name));

export const temperature = ({ temperature = 1 }: ProgramOptions): number => temperature * 2;

export default defineProgram(async function* ({ messages, tools, options, signal, responseSchema }) {
  const last = messages.at(-1);
  if (last?.role === "tool") yield `The tool said: ${textOf(last)}, ${last.tool_call_id.length}.`;
  if (last?.role === "assistant") yield last.tool_calls?.[0]?.type ?? last.reasoning_content ?? "";
  for (const tool of tools ?? []) {
    if (tool.type === "function" && tool.function.parameters?.["type"] === "object")
      yield { type: "tool-call", name: tool.function.name, arguments: {} };
  }
  const stops: readonly string[] = typeof options.stop === "string" ? [options.stop] : (options.stop ?? []);
  const limit: number = options.max_tokens ?? 100;
  if (options.reasoning_effort === "high") yield { type: "reasoning", text: `${limit} ${stops.length}` };
  if (options.response_format?.type === "json_schema") yield String(options.response_format.json_schema.name);
  const own: unknown = options["requirements"];
  if (own !== undefined && responseSchema?.strict) throw new RequestError("Unexpected.", { param: "requirements" });
  signal.throwIfAborted();
});

export const wrong = defineProgram(({ messages, tools, options }) => {
  // @ts-expect-error: content may be a list of parts, or null
  const text: string = messages[0]?.content;
  // @ts-expect-error: only messages of tools have it
  const id = messages[0]?.tool_call_id;
  // @ts-expect-error: there is no such role
  const isBot = messages[0]?.role === "bot";
  // @ts-expect-error: a custom tool has no function
  const name = tools?.[0]?.function.name;
  // @ts-expect-error: a number
  const heat: string | undefined = options.temperature;
  // @ts-expect-error: there is no such effort
  const isHuge = options.reasoning_effort === "huge";
  // @ts-expect-error: a list or one string
  const stops: string[] | undefined = options.stop;
  return [text, id, isBot, name, heat, isHuge, stops].join();
});

/** The parameters of a program in a configuration have their types, too. */
export const config: TruewireConfig = {
  models: [
    { kind: "program", name: "shout", program: ({ messages }) => String(messages.at(-1)?.content).toUpperCase() },
  ],
};

// @ts-expect-error: a program gives text or events
export const silent = defineProgram(() => 42);
