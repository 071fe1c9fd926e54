import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { pythonWith, runPython } from "../support/python.ts";
import { serveTurns } from "../support/serve-turns.ts";
import type { TurnsServer } from "../support/serve-turns.ts";

const python = pythonWith("openai");

/** Four turns of one conversation, each the other way: streamed, a call, structured, and a second client's that only knows an id. */
const script = `
import json, os, openai
from pydantic import BaseModel
client = openai.OpenAI(base_url=os.environ["BASE_URL"], api_key="none", max_retries=0)
out = {}
with client.responses.stream(model="scripted", input="Hello") as stream:
    types = [event.type for event in stream]
    first = stream.get_final_response()
out["first"] = [first.output_text, first.status, types[0], types[-1], sorted(set(types))]
tools = [{"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}, "strict": True}]
second = client.responses.create(model="scripted", input="And the weather?", previous_response_id=first.id, tools=tools)
call = second.output[-1]
out["second"] = [call.type, call.name, json.loads(call.arguments)]
class Weather(BaseModel):
    city: str
    degrees: int
third = client.responses.parse(model="scripted", previous_response_id=second.id, tools=tools, text_format=Weather,
    input=[{"type": "function_call_output", "call_id": call.call_id, "output": "21"}])
out["third"] = third.output_parsed.model_dump()
out["stored"] = client.responses.retrieve(third.id).output_text
out["items"] = [item.type for item in client.responses.input_items.list(third.id)]
client.responses.delete(third.id)
for name, ask in {
    "deleted": lambda: client.responses.retrieve(third.id),
    "unknown": lambda: client.responses.create(model="nope", input="x"),
    "wrong": lambda: client.responses.create(model="scripted", input="x", temperature=9),
}.items():
    try:
        ask()
    except openai.APIStatusError as error:
        out[name] = [type(error).__name__, error.status_code, error.param]
print(json.dumps(out))
`;

describe.skipIf(!python)("the official Python SDK, Responses", () => {
  let server: TurnsServer;
  beforeAll(async () => {
    server = await serveTurns([
      ["Hello ", "there."],
      [{ type: "tool-call", name: "get_weather", arguments: { city: "Paris" } }],
      ['{"city":"Paris",', '"degrees":21}'],
    ]);
  });
  afterAll(() => server.close());

  test("stream, calls, parse, state, typed exceptions", async () => {
    const out = (await runPython(python ?? "", script, server.baseURL)) as Record<string, unknown>;
    const [text, status, firstType, lastType, types] = out["first"] as [string, string, string, string, string[]];
    expect([text, status, firstType, lastType]).toEqual([
      "Hello there.",
      "completed",
      "response.created",
      "response.completed",
    ]);
    expect(types).toContain("response.output_text.delta");
    expect(out).toMatchObject({
      second: ["function_call", "get_weather", { city: "Paris" }],
      third: { city: "Paris", degrees: 21 },
      stored: '{"city":"Paris","degrees":21}',
      deleted: ["NotFoundError", 404, null],
      // As OpenAI has it in this API.
      unknown: ["BadRequestError", 400, "model"],
      wrong: ["BadRequestError", 400, "temperature"],
    });
    expect(out["items"]).toContain("function_call_output");
    expect(server.asked().at(-1)?.messages.length).toBe(5);
  });
});
