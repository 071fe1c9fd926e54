import { listOf, objectOf } from "../../doubles/chat-server.ts";
import type { Json } from "../../doubles/chat-server.ts";
import { tools } from "../../doubles/task.ts";
import { bearer, maxSteps, post, Refused, run } from "./client.ts";
import type { Returns, SessionClient } from "./client.ts";

const ollamaTools = tools.map(({ name, description, schema }) => ({
  type: "function",
  function: { name, description, parameters: schema },
}));

/** A client of Ollama's API without a library. "everything": the whole message; "half": without `thinking`; "nothing": also without ids. */
export function rawOllama(returns: Returns): SessionClient {
  return {
    name: `Ollama, returns ${returns}`,
    open(url, key) {
      const messages: Json[] = [];
      let requests = 0;
      return {
        async turn(model, text, at = url) {
          messages.push({ role: "user", content: text });
          const ran = [];
          for (let step = 0; step < maxSteps; step++) {
            const stream = requests++ % 2 === 0;
            const response = await post(
              `${at}/api/chat`,
              { model, messages, tools: ollamaTools, stream, think: true },
              bearer(key),
            );
            const message = put(await response.text());
            messages.push(returned(message, returns));
            const calls = listOf(message["tool_calls"]);
            if (calls.length === 0) return { text: String(message["content"]), calls: ran };
            for (const { id, function: called } of calls) {
              const { name, arguments: input } = objectOf(called);
              const result = run(String(name), input);
              ran.push(result.call);
              messages.push({
                role: "tool",
                content: result.text,
                tool_name: name,
                ...(returns !== "nothing" && id !== undefined && { tool_call_id: id }),
              });
            }
          }
          throw new Error("the turn does not end");
        },
      };
    },
  };
}

function put(text: string): Json {
  const message = { role: "assistant", content: "", thinking: "" };
  const calls: Json[] = [];
  for (const line of text.split("\n").filter(Boolean)) {
    const event = JSON.parse(line) as Json;
    if (event["error"] !== undefined) throw new Refused(JSON.stringify(event));
    const { content, thinking, tool_calls } = objectOf(event["message"]);
    message.content += typeof content === "string" ? content : "";
    message.thinking += typeof thinking === "string" ? thinking : "";
    calls.push(...listOf(tool_calls));
  }
  const { thinking, ...others } = message;
  return { ...others, ...(thinking !== "" && { thinking }), ...(calls.length > 0 && { tool_calls: calls }) };
}

function returned(message: Json, returns: Returns): Json {
  if (returns === "everything") return message;
  const { thinking: _, tool_calls: calls, ...others } = message;
  if (calls === undefined) return others;
  if (returns === "half") return { ...others, tool_calls: calls };
  return { ...others, tool_calls: listOf(calls).map(({ function: called }) => ({ function: called })) };
}
