import { afterAll, beforeAll, expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import type { LogFields } from "../../src/serve/server/log.ts";
import { say, startScripted } from "./scripted-server.ts";
import type { ScriptedServer } from "./scripted-server.ts";
import { until } from "../support/scripted-engine.ts";

// An upstream that leaves a call in its text: of a tool that the request has it becomes a call, of another it stays text, and the log
// warns of it with the request's id.
const text = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n</tool_call>';
const warnings: { readonly fields: LogFields; readonly message: string }[] = [];
let source: ScriptedServer;
let gateways: readonly TruewireServer[];

beforeAll(async () => {
  source = await startScripted((response, body) => say(response, body, text));
  const log = {
    debug: () => {},
    info: () => {},
    warn: (fields: LogFields, message: string) => void warnings.push({ fields, message }),
    error: () => {},
  };
  const serve = (toolFormat: string): Promise<TruewireServer> =>
    createServer({ port: 0, models: [{ kind: "upstream", url: source.url, name: "u", toolFormat }] }, { log });
  gateways = [await serve("hermes"), await serve("auto")];
});
afterAll(async () => {
  for (const gateway of gateways) await gateway.close();
  await source.close();
});

test.each([
  ["by its format", 0, true],
  ["by its format", 0, false],
  ["by its markers", 1, true],
])("the call is found %s (%i, stream %s)", async (_, which, stream) => {
  const ask = async (tool: string): Promise<{ id: string | null; answer: string }> => {
    const response = await fetch(`${gateways[which]?.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        model: "m",
        messages: [{ role: "user", content: "Hi" }],
        tools: [{ type: "function", function: { name: tool } }],
        stream,
      }),
    });
    return { id: response.headers.get("x-request-id"), answer: await response.text() };
  };
  const known = await ask("get_weather");
  expect(known.answer).toContain('"finish_reason":"tool_calls"');
  expect(known.answer).toContain('"name":"get_weather"');
  const unknown = await ask("clock");
  expect(unknown.answer).toContain("<tool_call>");
  expect(unknown.answer).not.toContain('"tool_calls"');
  await until(() => warnings.some(({ fields }) => fields["req"] === unknown.id), "the log warns");
  const { message } = warnings.find(({ fields }) => fields["req"] === unknown.id) ?? {};
  expect(message).toContain('The model called "get_weather", which the request does not have');
  expect(warnings.some(({ fields }) => fields["req"] === known.id)).toBe(false);
});
