import { listOf, objectOf } from "../../doubles/chat-server.ts";
import type { Json } from "../../doubles/chat-server.ts";
import { tools } from "../../doubles/task.ts";
import { bearer, dataOf, maxSteps, post, Refused, run } from "./client.ts";
import type { ClientSession, NextRequest, Returns, SessionClient } from "./client.ts";

const chatTools = tools.map(({ name, description, schema }) => ({
  type: "function",
  function: { name, description, parameters: schema },
}));

/**
 * A chat client without a library. Requests are streamed and not, in turns. "everything": each member of the message and of its calls;
 * "half": also the text of the reasoning; "nothing": contents and calls.
 */
export function rawChat(returns: Returns): SessionClient {
  return {
    name: `chat, returns ${returns}`,
    open(url, key) {
      const messages: Json[] = [{ role: "system", content: "You explore a house." }];
      let requests = 0;
      const session: ClientSession = {
        async turn(model, text, at = url) {
          messages.push({ role: "user", content: text });
          const ran = [];
          for (let step = 0; step < maxSteps; step++) {
            const stream = requests++ % 2 === 0;
            const request: NextRequest["request"] = () => {
              const body = { model, messages, tools: chatTools, stream, reasoning_effort: "medium" };
              return [`${at}/v1/chat/completions`, body, bearer(key)];
            };
            await session.before?.({ history: messages, step, request });
            const response = await post(...request());
            const message = stream ? put(await dataOf(response)) : wholeMessage(await response.json());
            messages.push(returned(message, returns));
            const calls = listOf(message["tool_calls"]);
            if (calls.length === 0) return { text: String(message["content"]), calls: ran };
            for (const call of calls) {
              const { name, arguments: json } = objectOf(call["function"]);
              const result = run(String(name), json);
              ran.push(result.call);
              messages.push({ role: "tool", tool_call_id: call["id"], content: result.text });
            }
          }
          throw new Error("the turn does not end");
        },
      };
      return session;
    },
  };
}

function wholeMessage(body: unknown): Json {
  return objectOf(listOf(objectOf(body)["choices"])[0]?.["message"]);
}

/** Puts the deltas of a stream together: texts are joined, lists have further entries, and those with an index are joined by it. */
function put(chunks: readonly Json[]): Json {
  const message: Record<string, unknown> = {};
  for (const chunk of chunks) {
    if (chunk["error"]) throw new Refused(JSON.stringify(chunk["error"]));
    join(message, objectOf(listOf(chunk["choices"])[0]?.["delta"]));
  }
  for (const call of listOf(message["tool_calls"])) delete (call as Record<string, unknown>)["index"];
  return { content: null, ...message };
}

function join(into: Record<string, unknown>, delta: Json): void {
  for (const [name, value] of Object.entries(delta)) {
    const known = into[name];
    if (value === null || value === undefined) into[name] ??= null;
    else if (typeof known === "string" && typeof value === "string" && !["role", "id", "type", "name"].includes(name))
      into[name] = (known ?? "") + value;
    else if (Array.isArray(value))
      into[name] = joinLists(Array.isArray(known) ? (known as Json[]) : [], value as Json[]);
    else if (typeof value === "object" && typeof known === "object" && known !== null)
      join(known as Record<string, unknown>, value as Json);
    else into[name] = typeof value === "object" ? structuredClone(value) : value;
  }
}

function joinLists(known: Json[], more: readonly Json[]): Json[] {
  for (const entry of more) {
    const same = known.find(
      ({ index, type }) => index !== undefined && index === entry["index"] && type === (entry["type"] ?? type),
    );
    if (!same) known.push(structuredClone(entry));
    else {
      // Names of formats are not parts of a text.
      const { format, ...others } = entry;
      join(same as Record<string, unknown>, others);
      if (format !== undefined) (same as Record<string, unknown>)["format"] = format;
    }
  }
  return known;
}

const half = ["role", "content", "reasoning_content", "reasoning"];

function returned(message: Json, returns: Returns): Json {
  if (returns === "everything") return message;
  const members = returns === "half" ? half : ["role", "content"];
  const calls = listOf(message["tool_calls"]).map(({ id, type, function: called }) => ({ id, type, function: called }));
  return {
    ...Object.fromEntries(Object.entries(message).filter(([name]) => members.includes(name))),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
}
