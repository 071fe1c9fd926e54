import { expect, expectTypeOf, test } from "vitest";
import type * as z from "zod";
import { listOf } from "../request/shapes.ts";
import { chatParameters, readChatRequest } from "./request.ts";
import * as schema from "./request-schema.ts";
import type { ChatRequestMessage, ChatRequestTool } from "./request-schema.ts";
import type { ProgramMessage, ProgramTool } from "./request-types.ts";
import { chatMembers } from "./send.ts";

// request-types.ts is generated from the schemas, so that users' code that imports these types is compiled without zod.
// `npx vitest run --project unit src/wire/apis/chat/request-types.test.ts -u` writes them anew.

/** How types are printed. `names`: the names of schemas that have a declaration. `omitted`: members that are never written. */
interface Form {
  readonly names: ReadonlyMap<z.ZodType, string>;
  readonly omitted: ReadonlySet<string>;
}

/** Prints the type of a schema's values as Truewire writes them: without null for what is absent. */
function typeOf(shape: z.ZodType, form: Form, indent = "", top = false): string {
  const name = top ? undefined : form.names.get(shape);
  if (name !== undefined) return name;
  const list = listOf(shape);
  if (list) return `${grouped(typeOf(list.item, form, indent))}[]`;
  const { def } = shape as unknown as { readonly def: Readonly<Record<string, unknown>> };
  const kind = def["type"];
  if (kind === "string" || kind === "number" || kind === "boolean" || kind === "unknown") return kind;
  if (kind === "literal")
    return (def["values"] as readonly unknown[]).map((value) => JSON.stringify(value)).join(" | ");
  if (kind === "enum")
    return Object.keys(def["entries"] as object)
      .map((value) => JSON.stringify(value))
      .join(" | ");
  if (kind === "nullable" || kind === "optional") return typeOf(def["innerType"] as z.ZodType, form, indent);
  // `anyObject`.
  if (kind === "pipe") return "Record<string, unknown>";
  if (kind === "union") {
    const all = def["options"] as readonly z.ZodType[];
    // Truewire writes the object that OpenAI specifies, not the bare URL of other programs.
    const options = all === imageOptions ? all.slice(1) : all;
    return options.map((option) => typeOf(option, form, indent)).join(" | ");
  }
  if (kind !== "object") throw new Error(`A schema of the unknown kind ${String(kind)}.`);
  const deeper = `${indent}  `;
  const members = Object.entries((shape as z.ZodObject).shape as Readonly<Record<string, z.ZodType>>)
    .filter(([member]) => !form.omitted.has(member))
    .map(([member, value]) => {
      const isOptional = (value as unknown as { readonly def: { readonly type: string } }).def.type === "optional";
      return `${deeper}${member}${isOptional ? "?" : ""}: ${typeOf(value, form, deeper)};\n`;
    });
  const open = def["catchall"] === undefined ? "" : `${deeper}[member: string]: unknown;\n`;
  return `{\n${members.join("")}${open}${indent}}`;
}

const imageOptions = (schema.imageContentPart.shape.image_url as unknown as z.ZodUnion).options;

/** Puts a union in parentheses. */
function grouped(type: string): string {
  let outer = type;
  for (let rest = ""; rest !== outer;) [rest, outer] = [outer, outer.replaceAll(/\{[^{}]*\}/g, "")];
  return outer.includes(" | ") ? `(${type})` : type;
}

function declaration(name: string, type: string, doc: string): string {
  return `/** ${doc} */\nexport type ${name} =${type.startsWith("\n") ? "" : " "}${type};\n`;
}

const head = "// Generated from the schemas by src/wire/apis/chat/request-types.test.ts.\n\n";

test("request-types.ts has the types of programs, from the schemas", async () => {
  await expect(head + typesOfPrograms().join("\n")).toMatchFileSnapshot("request-types.ts");
});

test("messages and tools of programs are those of requests", () => {
  // A tool's result may have images, which chat requests do not.
  expectTypeOf<Exclude<ProgramMessage, { role: "tool" | "system" | "developer" }>>().toExtend<ChatRequestMessage>();
  expectTypeOf<ProgramTool>().toExtend<ChatRequestTool>();
});

/** A value that the schema accepts. */
function sampleOf(shape: z.ZodType): unknown {
  const list = listOf(shape);
  if (list) return [sampleOf(list.item)];
  const { def } = shape as unknown as { readonly def: Readonly<Record<string, unknown>> };
  switch (def["type"]) {
    case "string":
      return "a";
    case "number":
      return 1;
    case "boolean":
      return true;
    case "enum":
      return Object.keys(def["entries"] as object)[0];
    case "literal":
      return (def["values"] as readonly unknown[])[0];
    case "union":
      return sampleOf((def["options"] as readonly z.ZodType[]).at(-1) as z.ZodType);
    case "object":
      return Object.fromEntries(
        Object.entries((shape as z.ZodObject).shape as Readonly<Record<string, z.ZodType>>)
          .filter(
            ([, value]) => (value as unknown as { readonly def: { readonly type: string } }).def.type !== "optional",
          )
          .map(([name, value]) => [name, sampleOf(value)]),
      );
    default:
      return {};
  }
}

/** The parameters that reach a program under their own names, found by sending each of them. */
function optionsOfPrograms() {
  const needed: Readonly<Record<string, object>> = {
    top_logprobs: { logprobs: true },
    continue_final_message: {
      add_generation_prompt: false,
      messages: [
        { role: "user", content: "a" },
        { role: "assistant", content: "b" },
      ],
    },
    tool_choice: { tools: [{ type: "function", function: { name: "a" } }] },
    parallel_tool_calls: { tools: [{ type: "function", function: { name: "a" } }] },
    return_progress: { stream: true },
    xtc_threshold: { xtc_probability: 1 },
    dry_base: { dry_multiplier: 1 },
    dry_allowed_length: { dry_multiplier: 1 },
    dry_penalty_last_n: { dry_multiplier: 1 },
    dry_sequence_breakers: { dry_multiplier: 1 },
  };
  const samples: Readonly<Record<string, unknown>> = {
    messages: [{ role: "user", content: "a" }],
    tool_choice: "auto",
    response_format: { type: "json_schema", json_schema: { name: "a", schema: {} } },
    grammar: 'root ::= "a"',
    hosted_tools: [],
    reasoning_format: "none",
    logit_bias: { 1: 1 },
  };
  const isOption = (name: string): boolean =>
    !/^(messages|model|stream|stream_options|n|tools|functions|function_call)$/.test(name);
  return chatParameters.filter(({ name, shape, treatment }) => {
    if (treatment === "refused" || !isOption(name)) return false;
    const body = {
      model: "m",
      messages: samples["messages"],
      [name]: samples[name] ?? sampleOf(shape),
      ...needed[name],
    };
    const { request } = readChatRequest(body, "req_1");
    if (request.prompt.kind !== "chat") return false;
    return chatMembers(request, request.prompt)[name] !== undefined;
  });
}

/** The types of what programs get: requests as Truewire writes them. */
function typesOfPrograms(): readonly string[] {
  const names = new Map<z.ZodType, string>([
    [schema.requestToolCall, "ProgramToolCall"],
    [schema.userPart, "ProgramContentPart"],
  ]);
  // A program has given no state.
  const states = ["extra_content", "provider_specific_fields", "reasoning_details", "thinking_blocks"];
  const omitted = new Set(["prompt_cache_breakpoint", "cache_control", ...states]);
  const form: Form = { names, omitted };
  // Truewire writes reasoning as `reasoning_content`, calls as `tool_calls`, and no reference to an earlier audio answer.
  const own: Form = { ...form, omitted: new Set([...omitted, "reasoning", "function_call", "audio", "content"]) };
  const print = (shape: z.ZodType): string => typeOf(shape, form, "", true);
  const content = "string | ProgramContentPart[]";
  const messages = [
    [schema.systemMessage, content],
    [schema.developerMessage, content],
    [schema.userMessage, content],
    // Without text, the content is null.
    [schema.chatAssistantMessage, 'string | { type: "text"; text: string }[] | null'],
    [schema.toolMessage, content],
  ].map(([shape, content]) => {
    const type = typeOf(shape as z.ZodType, own, "    ");
    return `\n  | ${type.replace(/role: .*\n/, (role) => `${role}      content: ${String(content)};\n`)}`;
  });
  const options = optionsOfPrograms().map(
    ({ name, shape }) => `  ${name}?: ${name === "logit_bias" ? biases : typeOf(shape, form, "  ")};\n`,
  );
  return [
    declaration("ProgramContentPart", print(schema.userPart), "A part of a message's content."),
    declaration("ProgramToolCall", print(schema.requestToolCall), "A call in an assistant message."),
    declaration(
      "ProgramMessage",
      messages.join(""),
      "A message, as a chat request has it. A tool's result may have images.",
    ),
    declaration("ProgramTool", print(schema.requestTool), "A tool that the client offers."),
    `/** The parameters of a chat request, by their meaning in docs/parameters.md, and the client's own members. */\nexport interface ProgramOptions {\n${options.join("")}  /** Members that Truewire does not know. */\n  [member: string]: unknown;\n}\n`,
  ];
}

const biases = "Record<string, number> | [token: number | string, bias: number][]";
