import { listOf, objectOf } from "../../doubles/chat-server.ts";
import type { Json } from "../../doubles/chat-server.ts";
import { tools } from "../../doubles/task.ts";
import { bearer, dataOf, maxSteps, post, Refused, run } from "./client.ts";
import type { ClientSession, NextRequest, SessionClient } from "./client.ts";

const responseTools = tools.map(({ name, description, schema }) => ({
  type: "function",
  name,
  description,
  parameters: schema,
  strict: false,
}));

/**
 * How a Responses client keeps its session: it returns all items as they came (`plain`), the same with `store: false` and
 * `include: ["reasoning.encrypted_content"]` (`include`), only texts and calls (`nothing`), the reasoning of every second answer (`half`), or
 * refers to the response before (`previous_response_id`).
 */
export type Keeping = "plain" | "include" | "nothing" | "half" | "previous_response_id";

export function rawResponses(keeping: Keeping): SessionClient {
  return {
    name: `Responses, ${keeping}`,
    open(url, key) {
      let input: Json[] = [];
      let previous: unknown;
      let requests = 0;
      const session: ClientSession = {
        async turn(model, text, at = url) {
          input.push({ type: "message", role: "user", content: [{ type: "input_text", text }] });
          const ran = [];
          for (let step = 0; step < maxSteps; step++) {
            const stream = requests++ % 2 === 0;
            const request: NextRequest["request"] = () => {
              const body = {
                model,
                input,
                instructions: "You explore a house.",
                tools: responseTools,
                stream,
                ...(keeping === "previous_response_id"
                  ? previous !== undefined && { previous_response_id: previous }
                  : { store: keeping === "plain" }),
                ...((keeping === "include" || keeping === "half") && { include: ["reasoning.encrypted_content"] }),
              };
              return [`${at}/v1/responses`, body, bearer(key)];
            };
            await session.before?.({ history: input, step, request });
            const response = await post(...request());
            const answer = stream ? last(await dataOf(response)) : ((await response.json()) as Json);
            const output = listOf(answer["output"]);
            const results: Json[] = [];
            for (const { type, call_id, name, arguments: json } of output) {
              if (type !== "function_call") continue;
              const result = run(String(name), json);
              ran.push(result.call);
              results.push({ type: "function_call_output", call_id, output: result.text });
            }
            if (keeping === "previous_response_id") {
              previous = answer["id"];
              input = results;
            } else input.push(...returned(output, keeping, requests), ...results);
            if (results.length === 0) return { text: textOf(output), calls: ran };
          }
          throw new Error("the turn does not end");
        },
      };
      return session;
    },
  };
}

function last(events: readonly Json[]): Json {
  const event = events.at(-1) ?? {};
  if (event["type"] !== "response.completed") throw new Refused(JSON.stringify(event));
  return objectOf(event["response"]);
}

function textOf(output: readonly Json[]): string {
  return output
    .filter(({ type }) => type === "message")
    .flatMap(({ content }) => listOf(content))
    .map(({ text }) => String(text))
    .join("");
}

function returned(output: readonly Json[], keeping: Keeping, requests: number): readonly Json[] {
  if (keeping === "plain" || keeping === "include" || (keeping === "half" && requests % 2 === 0)) return output;
  return output
    .filter(({ type }) => type !== "reasoning")
    .map(({ type, role, content, call_id, name, arguments: json }) =>
      type === "function_call"
        ? { type, call_id, name, arguments: json }
        : { type, role, content: listOf(content).map(({ text }) => ({ type: "output_text", text })) },
    );
}
