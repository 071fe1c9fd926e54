import type { Args, CallSyntax, Format, NamedCall, ObjectCall, PlainFormat, TaggedArgs } from "./format.ts";
import { parametersOf } from "../../wire/core/custom-tool.ts";
import type { Tool, ToolChoice } from "../../wire/core/message.ts";

interface WrittenCall {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

/**
 * Writes a call as a model of this format would, without unnecessary white space. `truewire formats` shows it, and every description must
 * read it back. Returns null if the format has no calls.
 */
export function writeCall(format: Format, call: WrittenCall): string | null {
  if (format.kind === "plain") return writePlain(format, call);
  for (const { to, write } of format.routes) {
    if (typeof to === "string" || !write) continue;
    const header = write[0].replaceAll("{name}", call.name) + format.headerEnd;
    return header + ("id" in to ? (writePlain(to, call) ?? "") : writeArguments(to, call));
  }
  return null;
}

function writePlain({ section, calls }: PlainFormat, call: WrittenCall): string | null {
  const [first] = calls;
  if (!first) return null;
  return (section?.open[0] ?? "") + writeDelimited(first, call, section?.close ?? []) + (section?.close[0] ?? "");
}

/** `sectionCloses`: the markers that end the section around the call. */
function writeDelimited(description: CallSyntax, call: WrittenCall, sectionCloses: readonly string[]): string {
  const { open, close, fence } = description;
  const body =
    description.form === "object" ? writeObject(description, call) : writeNamed(description, call, sectionCloses);
  const fenced = fence === true && description.form === "object" ? `\n\`\`\`json\n${body}\n\`\`\`` : body;
  return (open?.[0] ?? "") + fenced + (close?.[0] ?? "");
}

function writeObject(description: ObjectCall, call: WrittenCall): string {
  const { name, id, list } = description;
  const object =
    name === "key"
      ? { [call.name]: call.arguments }
      : {
          ...(id !== undefined && { [id]: "000000000" }),
          [name[0]]: call.name,
          [description.arguments[0]]: call.arguments,
        };
  const json = JSON.stringify(object);
  return list === "array" ? `[${json}]` : json;
}

function writeNamed(description: NamedCall, call: WrittenCall, sectionCloses: readonly string[]): string {
  const { head, headEnd, headEndKept = [], tagEnd = "", args, fence } = description;
  const written = head.replaceAll("{name}", call.name).replaceAll("{index}", "0").replaceAll("{id}", "000000000");
  const end = headEndKept.includes(headEnd[0]) ? "" : headEnd[0];
  const body = writeArguments(args, call, [...(description.close ?? []), ...sectionCloses]);
  const whole = written + end + tagEnd + (fence === true ? `\`\`\`json\n${body}\n\`\`\`` : body);
  return description.list === "python" ? `[${whole}]` : whole;
}

function writeArguments(args: Args, call: WrittenCall, closes: readonly string[] = []): string {
  const members = Object.entries(call.arguments);
  switch (args.kind) {
    case "json":
      return JSON.stringify(call.arguments);
    case "loose": {
      const [quote] = args.quotes;
      const value = (part: unknown): string => (typeof part === "string" ? quote + part + quote : JSON.stringify(part));
      return `{${members.map(([key, part]) => `${key}:${value(part)}`).join(",")}}`;
    }
    case "kwargs":
      return `${members.map(([key, part]) => `${key}=${JSON.stringify(part)}`).join(", ")})`;
    case "tagged":
      return members.map(([key, part]) => writeParameter(args, key, part, closes)).join("");
  }
}

function writeParameter(args: TaggedArgs, key: string, value: unknown, closes: readonly string[]): string {
  const { open, keyEnd, tagEnd = "", valueOpen = "", close, hint, trim } = args;
  const isString = typeof value === "string";
  const type = isString ? hint?.string : hint?.other.replace("{type}", typeOf(value));
  const attribute = hint ? ` ${hint.attribute}="${type}"` : "";
  const end = close.replaceAll("{key}", key);
  const text = isString ? value : jsonWithout([end, open, ...closes], value);
  const space = trim === "newline" ? "\n" : "";
  return open + key + keyEnd + attribute + tagEnd + valueOpen + space + text + space + end;
}

function typeOf(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
}

/** JSON in which markers are escaped, as grammars write it: `\\u003c/parameter>`. */
function jsonWithout(markers: readonly string[], value: unknown): string {
  let json = JSON.stringify(value);
  for (const marker of markers) {
    const [first = "", second = ""] = marker;
    const escaped = `\\u${first.charCodeAt(0).toString(16).padStart(4, "0")}`;
    // A marker that JSON has outside of strings, too, is not escaped.
    const isInString = !/[\s"\\{}[\],:]/.test(first) || /[^\s"\\{}[\],:\w.+-]/.test(second);
    if (isInString) json = json.replaceAll(marker, () => escaped + marker.slice(first.length));
  }
  return json;
}

/**
 * The instruction about tools for a model whose chat template does not support tools. It is added to the system message; the calls are read
 * as `generic-json`.
 */
export function toolInstruction(tools: readonly Tool[], choice: ToolChoice = { type: "auto" }): string {
  const described = tools.map((tool) =>
    JSON.stringify({
      name: tool.name,
      ...(tool.description === undefined ? {} : { description: tool.description }),
      parameters: parametersOf(tool) ?? { type: "object", properties: {} },
    }),
  );
  const call = 'a single JSON object and nothing else: {"name": <function name>, "arguments": <object of arguments>}';
  const must =
    choice.type === "named"
      ? `You must call the function ${JSON.stringify(choice.name)}. Answer with ${call}`
      : choice.type === "required" || (choice.type === "allowed" && choice.mode === "required")
        ? `You must call one of them. Answer with ${call}`
        : `To call one of them, answer with ${call}. If no function is needed, answer in plain text.`;
  return `You can call these functions, each described by a JSON object with the JSON Schema of its parameters:\n${described.join("\n")}\n${must}`;
}
