import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { pythonWith, runPython } from "../support/python.ts";
import { serveTurns } from "../support/serve-turns.ts";
import type { TurnsServer } from "../support/serve-turns.ts";

const python = pythonWith("anthropic");

const script = `
import json, os, anthropic
client = anthropic.Anthropic(base_url=os.environ["BASE_URL"].removesuffix("/v1"), api_key="none", max_retries=0)
out = {}
tools = [{"name": "get_weather", "description": "The weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}]
history = [{"role": "user", "content": "Hello"}]
with client.messages.stream(model="scripted", max_tokens=1000, messages=history) as stream:
    text = "".join(stream.text_stream)
    first = stream.get_final_message()
out["first"] = [text, first.stop_reason, [block.type for block in first.content]]
history += [{"role": "assistant", "content": first.content}, {"role": "user", "content": "And the weather?"}]
second = client.messages.create(model="scripted", max_tokens=1000, messages=history, tools=tools)
use = second.content[-1]
out["second"] = [second.stop_reason, use.name, use.input]
history += [{"role": "assistant", "content": second.content}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use.id, "content": "21", "is_error": False}]}]
with client.messages.stream(model="scripted", max_tokens=1000, messages=history, tools=tools) as stream:
    events = [event.type for event in stream]
    third = stream.get_final_message()
out["third"] = [third.content[0].text, third.usage.output_tokens >= 0, events[0], events[-1]]
out["models"] = [model.id for model in client.models.list()]
for name, ask in {
    "unknown": lambda: client.messages.create(model="nope", max_tokens=10, messages=history[:1]),
    "wrong": lambda: client.messages.create(model="scripted", max_tokens=10, messages=[]),
}.items():
    try:
        ask()
    except anthropic.APIStatusError as error:
        out[name] = [type(error).__name__, error.status_code, error.body["error"]["type"]]
print(json.dumps(out))
`;

describe.skipIf(!python)("Anthropic's Python SDK", () => {
  let server: TurnsServer;
  beforeAll(async () => {
    server = await serveTurns([
      [{ type: "reasoning", text: "A greeting." }, "Hello ", "there."],
      [{ type: "tool-call", name: "get_weather", arguments: { city: "Paris" } }],
      ["It is 21 degrees."],
    ]);
  });
  afterAll(() => server.close());

  test("create, stream, tools, models, typed exceptions", async () => {
    expect(await runPython(python ?? "", script, server.baseURL)).toEqual({
      first: ["Hello there.", "end_turn", ["thinking", "text"]],
      second: ["tool_use", "get_weather", { city: "Paris" }],
      third: ["It is 21 degrees.", true, "message_start", "message_stop"],
      models: ["scripted"],
      unknown: ["NotFoundError", 404, "not_found_error"],
      wrong: ["BadRequestError", 400, "invalid_request_error"],
    });
  });
});
