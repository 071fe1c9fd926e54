import { describe, expect, test } from "vitest";
import type { AssistantMessage, Message, ToolCall } from "../../wire/core/message.ts";
import { findFormat } from "./find-format.ts";
import type { WritingTemplate } from "./find-format.ts";
import type { PlainFormat } from "./format.ts";
import { assistantCalls, assistantParts, reasoningOf } from "../../wire/core/message.ts";
import { learnFormat } from "./learn-format.ts";
import { parseMessage } from "./parse-job.ts";
import { readsBack, renderCalls } from "./read-back.ts";
import type { Render } from "./read-back.ts";

function spoken(message: Message): string {
  if (message.role !== "assistant") return String(message.content);
  return assistantParts(message)
    .map((part) => (part.type === "text" ? part.text : ""))
    .join("");
}

/** A template in code: turns between markers, calls as `write` says. */
function template(write: (calls: readonly ToolCall[]) => string, hasReasoning = false): Render {
  const turn = (message: Message): string => {
    if (message.role !== "assistant") return `<|${message.role}|>${String(message.content)}<|end|>`;
    return `<|assistant|>${reasoning(message)}${assistantCalls(message).length > 0 ? write(assistantCalls(message)) : spoken(message)}<|end|>`;
  };
  const reasoning = (message: AssistantMessage): string =>
    hasReasoning && reasoningOf(message) !== undefined ? `<ponder>\n${reasoningOf(message)}\n</ponder>\n\n` : "";
  return (messages, _tools, generationPrompt) =>
    messages.map(turn).join("") + (generationPrompt ? "<|assistant|>" : "");
}

const parameters = (call: ToolCall): [string, unknown][] =>
  Object.entries(JSON.parse(call.arguments) as Record<string, unknown>);

const templates: Record<string, Render> = {
  "an object in markers of its own": template((calls) =>
    calls.map((call) => `<invocation>{"fn": "${call.name}", "with": ${call.arguments}}</invocation>`).join("\n"),
  ),
  "an array of objects with ids": template(
    (calls) =>
      `<<CALLS>>[${calls.map((call) => `{"id": "${call.id}", "tool": "${call.name}", "args": ${call.arguments}}`).join(", ")}]<</CALLS>>`,
  ),
  "a name before JSON, in a section": template(
    (calls) =>
      `<|calls|>${calls.map((call, i) => `<|call|>tools.${call.name}:${i}<|args|>${call.arguments}<|/call|>`).join("")}<|/calls|>`,
  ),
  "a tag a parameter, with a vendor's suffix": template(
    (calls) =>
      `<acts:x>\n${calls
        .map(
          (call) =>
            `<act:x>${call.name}<sep:x>\n${parameters(call)
              .map(([key, value]) => `<k:x>${key}</k:x>\n<v:x>${String(value)}</v:x>\n`)
              .join("")}</act:x>\n`,
        )
        .join("")}</acts:x>`,
  ),
  "attributes for strings": template((calls) =>
    calls
      .map(
        (call) =>
          `<do name="${call.name}">\n${parameters(call)
            .map(([key, value]) => `<with name="${key}" text="${typeof value === "string"}">${String(value)}</with>\n`)
            .join("")}</do>`,
      )
      .join("\n"),
  ),
  "a tag a parameter, in two markers each": template((calls) =>
    calls
      .map(
        (call) =>
          `<acts>\n<act=${call.name}>\n${parameters(call)
            .map(([key, value]) => `<arg=${key}>\n${String(value)}\n</arg>\n`)
            .join("")}</act>\n</acts>`,
      )
      .join("\n"),
  ),
  "an id after the name": template((calls) =>
    calls.map((call) => `[CALLING]${call.name}[WITH_ID]${call.id}[GIVEN]${call.arguments}`).join(""),
  ),
  "a Python call": template(
    (calls) =>
      `<py>[${calls
        .map(
          (call) =>
            `${call.name}(${parameters(call)
              .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
              .join(", ")})`,
        )
        .join(", ")}]</py>`,
  ),
};

describe.each(Object.entries(templates))("%s", (_name, render) => {
  test("is learned, for one call and for two", () => {
    const format = learnFormat(render);
    expect(format).toBeDefined();
    if (!format) return;
    expect(readsBack(format, renderCalls(render, 1) ?? "")).toBe(true);
    expect(readsBack(format, renderCalls(render, 2) ?? "", 2)).toBe(true);
  });
});

/** A template in code whose turns are written as `turn` says: role and text of each. */
function oddTemplate(turn: (role: string, text: string, isCall: boolean) => string, prompt: string): Render {
  const written = (calls: readonly ToolCall[]): string =>
    calls.map((call) => `<do>{"name": "${call.name}", "arguments": ${call.arguments}}</do>`).join("\n");
  return (messages, _tools, generationPrompt) =>
    messages
      .map((message) => {
        const calls = message.role === "assistant" ? assistantCalls(message) : [];
        const text = calls.length > 0 ? written(calls) : spoken(message);
        return turn(message.role, text, calls.length > 0);
      })
      .join("") + (generationPrompt ? prompt : "");
}

const name = (role: string): string => role.charAt(0).toUpperCase() + role.slice(1);
const oddTemplates: Record<string, Render> = {
  "turns are lines": oddTemplate((role, text) => `${name(role)}: ${text}\n`, "Assistant:"),
  "turns have no end": oddTemplate((role, text) => `<|${role}|>${text}`, "<|assistant|>"),
  "turns end in square brackets": oddTemplate((role, text) => `[${name(role)}]${text}[END]`, "[Assistant]"),
  "turns end with a word": oddTemplate((role, text) => `### ${name(role)}\n${text}\nEND\n`, "### Assistant\n"),
  "calls end otherwise than text": oddTemplate(
    (role, text, isCall) => `<|${role}|>${text}${isCall ? "<|wait|>" : "<|end|>"}\n`,
    "<|assistant|>",
  ),
  "a result is in the turn of its call": oddTemplate((role, text, isCall) => {
    if (role === "tool") return `<result>${text}</result>`;
    return isCall ? `<|assistant|>${text}` : `<|${role}|>${text}<|end|>`;
  }, "<|assistant|>"),
  "a call without its result is refused": (messages, tools, generationPrompt) => {
    const last = messages.at(-1);
    if (last?.role === "assistant" && assistantCalls(last).length > 0) throw new Error("where is the result?");
    const render = oddTemplates["turns are lines"];
    return render?.(messages, tools, generationPrompt) ?? "";
  },
};

// What ends the turn was looked for as a marker or a blank line: in templates with neither it became a part of the call's close, so that
// a model's call, which never has it, was read but never closed.
describe.each(Object.entries(oddTemplates))("where %s", (_name, render) => {
  test("the markers of a call are learned, and no more than they", () => {
    expect(learnFormat(render)?.calls).toMatchObject([{ form: "object", open: ["<do>"], close: ["</do>"] }]);
    expect(learnFormat(render)?.section).toBeUndefined();
  });
});

test("what a model writes otherwise than its template is read by what was learned, too", () => {
  const learned = (name: string): PlainFormat => {
    const format = learnFormat(templates[name] ?? template(() => ""));
    if (!format) throw new Error(`${name}: not learned`);
    return format;
  };
  const call = [{ name: "f", arguments: '{"a":1}' }];
  const tags = learned("a tag a parameter, in two markers each");
  const wide = "<acts> <act=f>  <arg=a>1</arg></act>\n\n\n</acts>";
  expect(parseMessage({ format: tags, text: wide })).toMatchObject({ content: "", calls: call });
  const ids = learned("an id after the name");
  const other = '[CALLING]f[WITH_ID]another[GIVEN]{"a":1}';
  expect(parseMessage({ format: ids, text: other })).toMatchObject({ content: "", calls: call });
});

test("the markers of reasoning are learned with the calls", () => {
  const render = template(
    (calls) => calls.map((call) => `<go>{"name": "${call.name}", "arguments": ${call.arguments}}</go>`).join(""),
    true,
  );
  expect(learnFormat(render)?.reasoning).toMatchObject({ open: ["<ponder>"], close: ["</ponder>"] });
});

test("a template that refuses calls teaches nothing, and has the generic format", () => {
  const render: Render = (messages) => {
    if (messages.some((message) => message.role === "tool")) throw new Error("no tools here");
    return "";
  };
  expect(learnFormat(render)).toBeUndefined();
  expect(findFormat(writing("{{ messages }}", render), {}).id).toBe("generic-json");
});

test("markers that a vendor renamed are taken from the template, what else is known of the format stays", () => {
  const render = template((calls) =>
    calls
      .map((call) => `<tool_call:v2>{"name": "${call.name}", "arguments": ${call.arguments}}</tool_call:v2>`)
      .join(""),
  );
  const format = findFormat(writing("… <tool_call> …", render), {});
  expect(readsBack(format, renderCalls(render, 1) ?? "")).toBe(true);
});

/** A template that recognises itself by this source and writes what this function writes. */
function writing(source: string, render: Render): WritingTemplate {
  return {
    source,
    render: ({ messages, tools, options }) => ({ text: render(messages, tools, options.addGenerationPrompt) }),
  };
}

const silent = writing("", () => "");

test("JSON between the markers that a template's metadata gives is a call", () => {
  const format = findFormat(silent, { toolStart: "<<call>>", toolEnd: "<</call>>" });
  const text = `So:<<call>>[{"name": "f", "arguments": {"x": 1}}]<</call>>`;
  expect(parseMessage({ format, text })).toMatchObject({
    content: "So:",
    calls: [{ name: "f", arguments: '{"x": 1}' }],
  });
});

test("a format that the metadata names is taken; an unknown name is none", () => {
  expect(findFormat(silent, { toolCallFormat: "hermes" }).id).toBe("hermes");
  expect(findFormat(silent, { toolCallFormat: "unknown" }).id).toBe("generic-json");
});
