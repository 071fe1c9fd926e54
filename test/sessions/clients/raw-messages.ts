import { listOf, objectOf } from "../../doubles/chat-server.ts";
import type { Json } from "../../doubles/chat-server.ts";
import { tools } from "../../doubles/task.ts";
import { dataOf, maxSteps, post, Refused, run } from "./client.ts";
import type { ClientSession, NextRequest, Returns, SessionClient } from "./client.ts";

const messageTools = tools.map(({ name, description, schema }) => ({ name, description, input_schema: schema }));

/**
 * A Messages client without a library, with `thinking: enabled`. Requests are streamed and not, in turns. "everything": all blocks; "half":
 * without `redacted_thinking`; "nothing": texts and calls.
 */
export function rawMessages(returns: Returns): SessionClient {
  return {
    name: `Messages, returns ${returns}`,
    open(url, key) {
      const messages: Json[] = [];
      let requests = 0;
      const session: ClientSession = {
        async turn(model, text, at = url) {
          messages.push({ role: "user", content: [{ type: "text", text }] });
          const ran = [];
          for (let step = 0; step < maxSteps; step++) {
            const stream = requests++ % 2 === 0;
            const request: NextRequest["request"] = () => {
              const thinking = { type: "enabled", budget_tokens: 2000 };
              const system = "You explore a house.";
              const body = { model, system, messages, tools: messageTools, thinking, max_tokens: 4000, stream };
              const headers = { "anthropic-version": "2023-06-01", ...(key !== undefined && { "x-api-key": key }) };
              return [`${at}/v1/messages`, body, headers];
            };
            await session.before?.({ history: messages, step, request });
            const response = await post(...request());
            const content = stream ? put(await dataOf(response)) : listOf(((await response.json()) as Json)["content"]);
            messages.push({ role: "assistant", content: returned(content, returns) });
            const results: Json[] = [];
            for (const { type, id, name, input } of content) {
              if (type !== "tool_use") continue;
              const result = run(String(name), input);
              ran.push(result.call);
              const is_error = result.isError;
              results.push({
                type: "tool_result",
                tool_use_id: id,
                content: result.text,
                ...(is_error && { is_error }),
              });
            }
            if (results.length === 0) return { text: content.map((block) => block["text"] ?? "").join(""), calls: ran };
            messages.push({ role: "user", content: results });
          }
          throw new Error("the turn does not end");
        },
      };
      return session;
    },
  };
}

function put(events: readonly Json[]): Json[] {
  const blocks: Record<string, unknown>[] = [];
  const inputs: string[] = [];
  for (const event of events) {
    const { type, index, content_block: block, delta } = event;
    if (type === "error") throw new Refused(JSON.stringify(event["error"]));
    const at = Number(index);
    if (type === "content_block_start") blocks[at] = { ...objectOf(block) };
    if (type !== "content_block_delta") continue;
    const { type: kind, ...members } = objectOf(delta);
    const open = blocks[at] ?? {};
    for (const [name, value] of Object.entries(members)) {
      if (kind === "input_json_delta") inputs[at] = (inputs[at] ?? "") + String(value);
      else open[name] = name === "signature" ? value : String(open[name] ?? "") + String(value);
    }
  }
  for (const [at, text] of inputs.entries()) if (text && blocks[at]) blocks[at]["input"] = JSON.parse(text);
  return blocks;
}

function returned(content: readonly Json[], returns: Returns): readonly Json[] {
  if (returns === "everything") return content;
  const left = returns === "half" ? ["redacted_thinking"] : ["thinking", "redacted_thinking"];
  return content.filter(({ type }) => !left.includes(String(type)));
}
