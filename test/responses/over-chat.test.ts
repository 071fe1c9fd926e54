import { createServer as createHttpServer } from "node:http";
import OpenAI from "openai";
import { expect, test } from "vitest";
import { closeAfterTest } from "../support/close-after-test.ts";
import { otherServers } from "../support/other-servers.ts";
import { startGateway } from "../upstream/gateway.ts";

const listening = otherServers();

/** A chat server that answers "Fine.", and the bodies that it got. */
async function overChat(): Promise<{ client: OpenAI; bodies: Record<string, unknown>[] }> {
  const bodies: Record<string, unknown>[] = [];
  const message = { role: "assistant", content: "Fine." };
  const answer = {
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1_800_000_000,
    model: "m",
    choices: [{ index: 0, message, finish_reason: "stop" }],
    usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 },
  };
  const upstream = createHttpServer((request, response) => {
    let text = "";
    request.on("data", (chunk: Buffer) => (text += chunk.toString()));
    request.on("end", () => {
      response.setHeader("content-type", "application/json");
      if (request.method === "GET") return response.end(JSON.stringify({ object: "list", data: [{ id: "m" }] }));
      bodies.push(JSON.parse(text) as Record<string, unknown>);
      return response.end(JSON.stringify(answer));
    });
  });
  const url = await listening(upstream);
  const server = await startGateway(`${url}/v1`, { api: "chat", retries: 0, requests: { sharedMembers: true } });
  closeAfterTest(() => server.close(0));
  return { client: new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 }), bodies };
}

// Each of these was refused, or went to a server that refuses it.
test("requests of 2026-11 reach a chat server in its own form", async () => {
  const { client, bodies } = await overChat();
  const parameters = { type: "object", properties: {}, additionalProperties: false, required: [] };
  const request = {
    model: "m",
    input: [
      { role: "user", content: "Build it." },
      { type: "function_call", call_id: "call_1", name: "build", arguments: "{}", async: true },
      { type: "function_call_output", name: "alarm", output: "It rings." },
      { type: "configuration_update", reasoning: { effort: "low" } },
      { role: "user", content: [{ type: "input_text", text: "And?", prompt_cache_breakpoint: { mode: "explicit" } }] },
    ],
    tools: [{ type: "function", name: "build", parameters, strict: true, async: true }],
    prompt_cache_options: { mode: "explicit", ttl: "12h" },
    access_programs: { cyber: "standard" },
    image: { context_compression: "auto" },
    service_tier: "ultrafast",
  };
  const response = await client.responses.create(
    request as unknown as OpenAI.Responses.ResponseCreateParamsNonStreaming,
  );
  expect(response).toMatchObject({
    output_text: "Fine.",
    service_tier: "default",
    prompt_cache_options: { mode: "explicit", ttl: "12h" },
  });
  const call = (id: string, name: string): object => ({ id, type: "function", function: { name, arguments: "{}" } });
  expect(bodies).toHaveLength(1);
  expect(bodies[0]?.["messages"]).toMatchObject([
    { role: "user", content: "Build it." },
    { role: "assistant", tool_calls: [call("call_1", "build"), call("call_unasked_1", "alarm")] },
    { role: "tool", tool_call_id: "call_unasked_1", content: "It rings." },
    { role: "tool", tool_call_id: "call_1", content: "The output is not available yet." },
    { role: "user" },
  ]);
  expect(bodies[0]).toMatchObject({ service_tier: "priority" });
  for (const name of ["prompt_cache_options", "access_programs", "image"]) expect(bodies[0]).not.toHaveProperty(name);
  expect(JSON.stringify(bodies[0])).not.toMatch(/async|prompt_cache_breakpoint/);
});
