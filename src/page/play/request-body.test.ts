import { expect, test } from "vitest";
import { requestBody } from "./request-body.ts";
import { Settings } from "./settings.ts";

const said = [{ role: "user", content: "Hi" }] as const;

function settingsWith(values: Parameters<Settings["set"]>[0]): Settings {
  const settings = new Settings();
  settings.set({ model: "m", ...values });
  return settings;
}

test("what is not set is not sent", () => {
  expect(requestBody(settingsWith({}), said)).toEqual({
    model: "m",
    messages: said,
    stream: true,
    stream_options: { include_usage: true },
  });
});

test("all that can be set is sent", () => {
  const table = [{ name: "seed", treatment: "honoured", origin: "openai", note: "", type: "number" }] as const;
  const tool = { id: 1, name: "f", description: "", parameters: "", canned: "x" };
  const body = requestBody(
    settingsWith({
      system: "Be brief.",
      table,
      parameters: { seed: "7", unknown: "x" },
      tools: [tool],
      toolChoice: "tool:f",
      format: "schema",
      schema: "{}",
      choices: 2,
      alternatives: 0,
    }),
    said,
  );
  expect(body).toMatchObject({
    messages: [{ role: "system", content: "Be brief." }, ...said],
    seed: 7,
    tools: [{ type: "function", function: { name: "f" } }],
    tool_choice: { type: "function", function: { name: "f" } },
    response_format: { type: "json_schema", json_schema: { name: "answer", strict: true, schema: {} } },
    n: 2,
    logprobs: true,
    top_logprobs: 0,
  });
  expect(body).not.toHaveProperty("unknown");
});

// An example that was clicked before the models were known asked for the model "".
test("nothing is asked while no model is known", () => {
  expect(() => requestBody(settingsWith({ model: "" }), said)).toThrow(
    "the server has not sent its list of models yet",
  );
});
