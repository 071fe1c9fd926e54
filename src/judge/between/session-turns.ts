import { isObject } from "../../wire/core/json.ts";
import { weather } from "./fact-values.ts";
import { type Api, type Json, markerOf, parsed, toolIn, turnsOf } from "./facts.ts";

const rule = "A rule of the session that is worth caching. ".repeat(200);

/** The body of a session's request with these turns, after a long rule that can be cached. */
export function sessionBody(api: Api, base: Json, turns: readonly Json[]): Json {
  const member = turnsOf[api];
  const system = member === "messages" && api !== "messages" ? [{ role: "system", content: rule }] : [];
  return { ...base, ...sessionMembers(api), [member]: [...system, ...turns] };
}

/** What a request needs for an answer with reasoning that its vendor demands back. */
export const reasoningMembers: Readonly<Record<Api, Json>> = {
  messages: { max_tokens: 4000, thinking: { type: "enabled", budget_tokens: 2048 } },
  responses: { store: false, include: ["reasoning.encrypted_content"], reasoning: { effort: "high" } },
  chat: { reasoning_effort: "high" },
  ollama: { think: "high" },
  gemini: { generationConfig: { thinkingConfig: { thinkingLevel: "high", includeThoughts: true } } },
};

/** The result of a call. */
export interface Outcome {
  readonly text: string;
  readonly isError?: true;
  /** A PNG in base64, for APIs that have images in results. */
  readonly image?: string;
}

/**
 * An answer as a client gives it back, with the results of its calls, each with the marker of the request `id`; without calls, the next
 * question follows. undefined: there is no answer, or neither calls nor a question.
 */
export function nextTurns(
  api: Api,
  answer: string,
  id: string,
  outcomes: readonly Outcome[],
  question?: Json,
): Json[] | undefined {
  const { items, calls } = turnIn(api, parsed(answer));
  if (items.length === 0 || (calls.length === 0 && (!question || outcomes.length > 0))) return undefined;
  if (calls.length === 0) return [...items, question ?? {}];
  const results = calls.map((called, at) => {
    const { text = "", ...outcome } = outcomes[at % outcomes.length] ?? {};
    return resultIn(api, called, { ...outcome, text: `${markerOf(id)} ${text}` });
  });
  // Results of one turn are parts of one message there.
  if (api === "messages") return [...items, { role: "user", content: results }];
  return [...items, ...(api === "gemini" ? [{ role: "user", parts: results }] : results)];
}

/** The turn of an answer, and the ids of its calls. */
function turnIn(api: Api, answer: unknown): { readonly items: Json[]; readonly calls: unknown[] } {
  const root = isObject(answer) ? answer : {};
  const objects = (list: unknown): Json[] => (Array.isArray(list) ? list.filter(isObject) : []);
  const ofType = (list: Json[], type: string, id: string): unknown[] =>
    list.filter((item) => item["type"] === type).map((item) => item[id]);
  switch (api) {
    case "chat":
    case "ollama": {
      const { message } = api === "ollama" ? root : (objects(root["choices"])[0] ?? {});
      if (!isObject(message)) return { items: [], calls: [] };
      return { items: [message], calls: objects(message["tool_calls"]).map(({ id }) => id) };
    }
    case "responses": {
      const items = objects(root["output"]);
      return { items, calls: ofType(items, "function_call", "call_id") };
    }
    case "messages": {
      const content = objects(root["content"]);
      return {
        items: content.length === 0 ? [] : [{ role: "assistant", content }],
        calls: ofType(content, "tool_use", "id"),
      };
    }
    case "gemini": {
      const content = objects(root["candidates"])[0]?.["content"];
      if (!isObject(content)) return { items: [], calls: [] };
      const called = objects(content["parts"]).flatMap(({ functionCall }) =>
        isObject(functionCall) ? [functionCall] : [],
      );
      return { items: [content], calls: called.map(({ id }) => id) };
    }
  }
}

function resultIn(api: Api, id: unknown, { text, isError, image }: Outcome): Json {
  switch (api) {
    case "chat":
      return { role: "tool", tool_call_id: id, content: text };
    case "ollama":
      return { role: "tool", tool_call_id: id, tool_name: weather.name, content: text };
    case "responses": {
      const picture = { type: "input_image", image_url: `data:image/png;base64,${image}` };
      const output = image === undefined ? text : [{ type: "input_text", text }, picture];
      return { type: "function_call_output", call_id: id, output };
    }
    case "messages": {
      const picture = { type: "image", source: { type: "base64", media_type: "image/png", data: image } };
      const content = image === undefined ? text : [{ type: "text", text }, picture];
      return { type: "tool_result", tool_use_id: id, content, ...(isError && { is_error: true }) };
    }
    case "gemini": {
      const parts = image !== undefined && { parts: [{ inlineData: { mimeType: "image/png", data: image } }] };
      const response = isError ? { error: text } : { output: text };
      return { functionResponse: { id, name: weather.name, response, ...parts } };
    }
  }
}

function sessionMembers(api: Api): Json {
  const tools = [toolIn(api, weather)];
  switch (api) {
    case "chat":
      return { tools, prompt_cache_key: "session-17" };
    case "responses":
      return { tools, instructions: rule, prompt_cache_key: "session-17" };
    case "messages":
      return { tools, system: [{ type: "text", text: rule, cache_control: { type: "ephemeral" } }] };
    case "ollama":
      return { tools };
    case "gemini":
      return { tools, systemInstruction: { parts: [{ text: rule }] } };
  }
}
