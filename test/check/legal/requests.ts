import { between, oneOf } from "../random.ts";

/** A chat request of any kind, but for `stream`. */
export function chatRequest(random: () => number): Record<string, unknown> {
  const body: Record<string, unknown> = { model: "m", messages: [{ role: "user", content: "Hi" }] };
  if (random() < 0.25) body.n = between(2, 3, random);
  if (random() < 0.3) Object.assign(body, { logprobs: true, top_logprobs: between(0, 3, random) });
  if (random() < 0.5) {
    body.tools = ["f", "get_weather"].map((name) => ({
      type: "function",
      function: { name, parameters: { type: "object", properties: {} } },
    }));
    const choice = oneOf(
      [undefined, "auto", "none", "required", { type: "function", function: { name: "f" } }],
      random,
    );
    if (choice !== undefined) body.tool_choice = choice;
    if (random() < 0.3) body.parallel_tool_calls = false;
  }
  if (random() < 0.2) body.stop = ["<stop>"];
  if (random() < 0.2) body.max_completion_tokens = 1000;
  return body;
}

/** A request of the legacy endpoint, but for `stream`. */
export function completionRequest(random: () => number): Record<string, unknown> {
  const body: Record<string, unknown> = { model: "m", prompt: "Once" };
  if (random() < 0.3) body.n = 2;
  if (random() < 0.4) body.logprobs = between(0, 3, random);
  return body;
}

/** The same, streamed: with or without usage, with or without obfuscation. */
export function streamed(body: Record<string, unknown>, random: () => number): Record<string, unknown> {
  const usage = oneOf([undefined, undefined, true, true, false], random);
  const obfuscation = oneOf([undefined, undefined, undefined, false, true], random);
  const options = {
    ...(usage !== undefined && { include_usage: usage }),
    ...(obfuscation !== undefined && "messages" in body && { include_obfuscation: obfuscation }),
  };
  return { ...body, stream: true, ...(Object.keys(options).length > 0 && { stream_options: options }) };
}
