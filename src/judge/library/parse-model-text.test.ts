import fc from "fast-check";
import { expect, test } from "vitest";
import { accumulate } from "../../wire/core/accumulate.ts";
import type { GenerationEvent } from "../../wire/core/events.ts";
import { formatNames, ModelTextParser, parseModelText } from "./parse-model-text.ts";

const text =
  '<think>Let me think: <tool</think>\n\nI call.\n<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": [true, "x"]}}\n</tool_call>';
const newCallId = (): string => "call_1";

test("content, reasoning and calls come apart; the arguments keep their text", () => {
  const message = parseModelText(text, { format: "hermes", newCallId });
  expect(message.reasoning).toBe("Let me think: <tool");
  expect(message.content).toMatch(/^I call\./);
  expect(message.toolCalls).toEqual([{ id: "call_1", name: "add", arguments: '{"a": 1, "b": [true, "x"]}' }]);
});

test("for every way of cutting the text, the parser tells the same message", () => {
  const expected = parseModelText(text, { format: "hermes", newCallId });
  fc.assert(
    fc.property(fc.array(fc.nat(text.length), { maxLength: 12 }), (cuts) => {
      const places = [0, ...cuts.sort((a, b) => a - b), text.length];
      const parser = new ModelTextParser({ format: "hermes", newCallId });
      const events: GenerationEvent[] = places.slice(1).flatMap((to, i) => parser.push(text.slice(places[i], to)));
      const { choices, end } = accumulate([...events, ...parser.end()]);
      expect(end.kind).toBe("done");
      const [choice] = choices;
      const calls = choice?.toolCalls.map(({ id, name, arguments: args }) => ({ id, name, arguments: args }));
      expect({ content: choice?.text, reasoning: choice?.reasoning, toolCalls: calls }).toEqual(expected);
    }),
  );
});

test("the prompt's end may have begun the thought", () => {
  const message = parseModelText("Easy.</think>Four.", {
    format: "hermes",
    prefix: "<|im_start|>assistant\n<think>\n",
  });
  expect(message).toEqual({ content: "Four.", reasoning: "Easy." });
});

test("with tools, a call of an unknown name stays text", () => {
  const message = parseModelText(text, { format: "hermes", tools: [{ name: "sub" }] });
  expect(message.toolCalls).toBeUndefined();
  expect(message.content).toContain("<tool_call>");
});

test("a template tells the format, by its markers or by how it writes a call", () => {
  const ownMarkers = `{%- for m in messages -%}<|{{ m.role }}|>{% if m.content %}{{ m.content }}{% endif %}
{%- for call in m.tool_calls or [] -%}<acme_call>{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}</acme_call>{%- endfor -%}
<|over|>{%- endfor -%}{%- if add_generation_prompt %}<|assistant|>{% endif -%}`;
  const message = parseModelText('<acme_call>{"name": "f", "arguments": {"a": 0}}</acme_call>', {
    template: ownMarkers,
    newCallId,
  });
  expect(message).toEqual({ content: null, toolCalls: [{ id: "call_1", name: "f", arguments: '{"a": 0}' }] });
});

test("a text that its budget ended stays incomplete", () => {
  const parser = new ModelTextParser({ format: "hermes", newCallId });
  const events = [...parser.push('<tool_call>{"name": "f", "arguments": {"a": '), ...parser.end(true)];
  const { choices } = accumulate(events);
  expect(choices[0]).toMatchObject({ finish: { reason: "length" }, toolCalls: [{ name: "f" }] });
  expect(choices[0]?.toolCalls[0]?.status).not.toBe("succeeded");
});

test("an empty text is an empty message; a wrong option is said", () => {
  expect(parseModelText("", { format: "hermes" })).toEqual({ content: "" });
  expect(() => parseModelText("", { format: "nonsense" })).toThrow(RangeError);
  expect(() => parseModelText("", {})).toThrow(TypeError);
  expect(formatNames).toContain("hermes");
});
