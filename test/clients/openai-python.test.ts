import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { said, serveFixture } from "../support/fixture-server.ts";
import type { FixtureServer } from "../support/fixture-server.ts";
import { pythonWith, runPython } from "../support/python.ts";

const python = pythonWith("openai");

const script = `
import json, os, openai
client = openai.OpenAI(base_url=os.environ["BASE_URL"], api_key="none", max_retries=0)
ask = lambda text: {"model": "programmed", "messages": [{"role": "user", "content": text}]}
out = {}
out["whole"] = client.chat.completions.create(**ask("#plain")).choices[0].message.content
out["naive"] = "".join(chunk.choices[0].delta.content or "" for chunk in client.chat.completions.create(**ask("#unicode"), stream=True))
with client.chat.completions.stream(**ask("#plain")) as stream:
    out["stream"] = stream.get_final_completion().choices[0].message.content
tools = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}]
with client.chat.completions.stream(**ask("#call"), tools=tools) as stream:
    call = stream.get_final_completion().choices[0].message.tool_calls[0]
    out["call"] = [call.function.name, json.loads(call.function.arguments)]
out["completion"] = client.completions.create(model="programmed", prompt="<|script:plain|>").choices[0].text
out["models"] = [model.id for model in client.models.list()]
for name, call in {
    "unknown": lambda: client.chat.completions.create(**{**ask("x"), "model": "nope"}),
    "wrong": lambda: client.chat.completions.create(**ask("x"), n=0),
}.items():
    try:
        call()
    except openai.APIStatusError as error:
        out[name] = [type(error).__name__, error.status_code]
print(json.dumps(out))
`;

describe.skipIf(!python)("the official Python SDK", () => {
  let server: FixtureServer;
  beforeAll(async () => {
    server = await serveFixture();
  });
  afterAll(() => server.close());

  test("create, naive loop, strict accumulator, tools, completions, models, typed exceptions", async () => {
    expect(await runPython(python ?? "", script, server.baseURL)).toEqual({
      whole: said.plain,
      naive: said.unicode,
      stream: said.plain,
      call: ["get_weather", { city: "Paris" }],
      completion: said.plain,
      models: ["programmed"],
      unknown: ["NotFoundError", 404],
      wrong: ["BadRequestError", 400],
    });
  });
});
