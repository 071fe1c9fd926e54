import { describe, expect, test } from "vitest";
import type { AssistantMessage, Message, ToolCall } from "../generation/message.ts";
import { findFormat } from "./find-format.ts";
import { learnFormat } from "./learn-format.ts";
import { readsBack, renderCalls } from "./read-back.ts";
import type { Render } from "./read-back.ts";

/** A template in code: turns between markers, calls as `write` says. */
function template(write: (calls: readonly ToolCall[]) => string, thoughts = false): Render {
  const turn = (message: Message): string => {
    if (message.role !== "assistant") return `<|${message.role}|>${String(message.content)}<|end|>`;
    return `<|assistant|>${thoughtOf(message)}${message.toolCalls ? write(message.toolCalls) : String(message.content)}<|end|>`;
  };
  const thoughtOf = ({ reasoning }: AssistantMessage): string =>
    thoughts && reasoning !== undefined ? `<ponder>\n${reasoning}\n</ponder>\n\n` : "";
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
  "attributes that tell strings": template((calls) =>
    calls
      .map(
        (call) =>
          `<do name="${call.name}">\n${parameters(call)
            .map(([key, value]) => `<with name="${key}" text="${typeof value === "string"}">${String(value)}</with>\n`)
            .join("")}</do>`,
      )
      .join("\n"),
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

test("the markers of a thought are learned with the calls", () => {
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
  expect(findFormat("{{ messages }}", render).id).toBe("generic-json");
});

test("markers that a vendor renamed are taken from the template, what else is known of the format stays", () => {
  const render = template((calls) =>
    calls
      .map((call) => `<tool_call:v2>{"name": "${call.name}", "arguments": ${call.arguments}}</tool_call:v2>`)
      .join(""),
  );
  const format = findFormat("… <tool_call> …", render);
  expect(readsBack(format, renderCalls(render, 1) ?? "")).toBe(true);
});
