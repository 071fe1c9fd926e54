import { gzipSync } from "node:zlib";

/** A request's body that is made to cost far more than its bytes. */
export interface BodyBomb {
  readonly name: string;
  readonly path: string;
  /** What is sent, and how it is packed. */
  readonly make: (model: string) => { readonly bytes: Buffer; readonly encoding?: "gzip" };
  /** What the refusal must name, where the body is to be refused. */
  readonly told?: RegExp;
}

const user = '{"role":"user","content":"Hi"}';

interface Api {
  readonly path: string;
  /** The members of every request, as JSON without the braces. */
  readonly members: string;
}

const chatApi: Api = { path: "/v1/chat/completions", members: '"max_tokens":4' };
const responsesApi: Api = { path: "/v1/responses", members: '"max_output_tokens":16' };
const messagesApi: Api = { path: "/v1/messages", members: '"max_tokens":4' };

function bomb(api: Api, name: string, members: () => string, told?: RegExp): BodyBomb {
  const { path } = api;
  const make = (model: string): { readonly bytes: Buffer } => ({
    bytes: Buffer.from(`{"model":${JSON.stringify(model)},${api.members},${members()}}`),
  });
  return told ? { name, path, make, told } : { name, path, make };
}

const chat = bomb.bind(null, chatApi);
const responses = (name: string, ...rest: [members: () => string, told?: RegExp]): BodyBomb =>
  bomb(responsesApi, `Responses: ${name}`, ...rest);
const messages = (name: string, ...rest: [members: () => string, told?: RegExp]): BodyBomb =>
  bomb(messagesApi, `Messages: ${name}`, ...rest);

function listOf(count: number, item: string): string {
  return `[${`${item},`.repeat(count - 1)}${item}]`;
}

function keys(count: number, prefix: string, value: string): string {
  return Array.from({ length: count }, (_, at) => `"${prefix}${at}":${value}`).join(",");
}

const said = `"messages":[${user}]`;
const input = '"input":"Hi"';
const tool = '{"type":"function","function":{"name":"f"}}';
const call = '{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}';
const schema = '{"type":"object","properties":{"a":{"type":"string"}}}';
const text = '{"type":"text","text":"x"}';
const megabytes = (count: number): string => "x".repeat(count * 2 ** 20);
const deep = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);
const sealed = (mark: string, json: string): string => mark + Buffer.from(json).toString("base64");
/** Which of the counts of a whole body is over first. */
const counted = /objects and lists|members|strings/;
const tooManyInputs = /'input': array too long. Expected an array with maximum length 20000/;
const tooManyMessages = /messages: List should have at most 20000 items/;

/** Those that took a server's memory or its event loop. Those without `told` are as large as is allowed, and must be answered. */
export const bodyBombs: readonly BodyBomb[] = [
  packed("15 million numbers in messages, as 29 kB of gzip", () => `"messages":${listOf(15_000_000, "1")}`, /values/),
  chat("3 million numbers in messages", () => `"messages":${listOf(3_000_000, "1")}`, /2000000 values/),
  chat("2 million numbers in messages", () => `"messages":${listOf(1_900_000, "1")}`, /maximum length 20000/),
  chat("20 MB of stop strings", () => `${said},"stop":${listOf(5_000_000, '"a"')}`, /300000 strings/),
  chat("2 million numbers in stop", () => `${said},"stop":${listOf(1_900_000, "1")}`, /stop/),
  chat("2,000 stop strings", () => `${said},"stop":${listOf(2000, '"a"')}`, /maximum length 1000/),
  chat(
    "1.5 million template variables",
    () => `${said},"chat_template_kwargs":{${keys(1_500_000, "k", "1")}}`,
    /100000 members/,
  ),
  chat("a million metadata", () => `${said},"metadata":{${keys(1_000_000, "k", '"v"')}}`, /members|strings/),
  chat("90,000 metadata", () => `${said},"metadata":{${keys(90_000, "k", "1")}}`, /at most 16/),
  chat("a million unknown members", () => `${said},${keys(1_000_000, "k", "1")}`, /members/),
  chat("90,000 unknown members", () => `${said},${keys(90_000, "k", "1")}`, /1000 unknown/),
  chat("300,000 tools", () => `${said},"tools":${listOf(300_000, tool)}`, counted),
  chat("20,000 tools", () => `${said},"tools":${listOf(20_000, tool)}`, /maximum length 4096/),
  chat("a million empty messages", () => `"messages":${listOf(1_000_000, "{}")}`, /100000 objects/),
  chat("90,000 empty messages", () => `"messages":${listOf(90_000, "{}")}`, /maximum length 20000/),
  chat("400,000 messages", () => `"messages":${listOf(400_000, user)}`, counted),
  chat(
    "300,000 calls",
    () => `"messages":[${user},{"role":"assistant","tool_calls":${listOf(300_000, call)}}]`,
    counted,
  ),
  chat("lists 5 million deep", () => `"messages":${deep(5_000_000)}`, /1000 levels/),
  chat("a schema 900 deep", () => `${said},"user_data":${'{"a":'.repeat(900)}1${"}".repeat(900)}`),
  chat(
    "10 MB of one control token",
    () => `"messages":[{"role":"user","content":"${"<|im_end|>".repeat(1_000_000)}"}]`,
  ),
  chat("30 MB of text", () => `"messages":[{"role":"user","content":"${megabytes(30)}"}]`),
  chat("15 MB of escapes", () => `"messages":[{"role":"user","content":"${'\\"'.repeat(7_500_000)}"}]`),
  chat("a name of 30 MB", () => `${said},"${megabytes(30)}":1`),
  chat("a number of 30 MB", () => `${said},"number":${"1".repeat(30 * 2 ** 20)}`),
  chat("18,000 messages", () => `"messages":${listOf(18_000, user)}`),
  chat("25,000 parts", () => `"messages":${listOf(5, `{"role":"user","content":${listOf(5000, text)}}`)}`),
  chat("a million numbers in an unknown member", () => `${said},"numbers":${listOf(1_000_000, "0.5")}`),
  chat("4,000 tools", () => `${said},"tools":${listOf(4000, tool.replace("}}", `,"parameters":${schema}}}`))}`),

  responses("2 million numbers as input", () => `"input":${listOf(1_900_000, "1")}`, tooManyInputs),
  responses("300,000 items", () => `"input":${listOf(300_000, user)}`, counted),
  responses("30,000 items", () => `"input":${listOf(30_000, user)}`, tooManyInputs),
  responses("18,000 items", () => `"input":${listOf(18_000, user)}`),
  responses(
    "20,000 references to nothing",
    () =>
      `"input":[${Array.from({ length: 19_999 }, (_, at) => `{"type":"item_reference","id":"msg_${at}"}`).join()},${user}]`,
  ),
  responses(
    "30,000 parts",
    () => `"input":[{"role":"user","content":${listOf(30_000, '{"type":"input_text","text":"x"}')}}]`,
    /input\[0\].content': array too long. Expected an array with maximum length 5000/,
  ),
  responses("300,000 tools", () => `${input},"tools":${listOf(300_000, '{"type":"function","name":"f"}')}`, counted),
  responses(
    "30,000 tools",
    () => `${input},"tools":${listOf(30_000, '{"type":"function","name":"f"}')}`,
    /'tools': array too long. Expected an array with maximum length 4096/,
  ),
  responses(
    "20,000 tools in groups",
    () =>
      `${input},"tools":${listOf(5, `{"type":"namespace","name":"n","tools":${listOf(4000, '{"type":"function","name":"f"}')}}`)}`,
    /'tools': array too long. Expected an array with maximum length 4096/,
  ),
  responses("an input 5 million deep", () => `"input":${deep(5_000_000)}`, /1000 levels/),
  responses("an item 900 deep", () => `"input":[${user},{"type":"reasoning","content":[],"x":${deep(900)}}]`),
  responses("90,000 unknown members", () => `${input},${keys(90_000, "k", "1")}`, /1000 unknown/),
  responses("90,000 metadata", () => `${input},"metadata":{${keys(90_000, "k", "1")}}`, /at most 16/),
  // A forged seal is not opened, so its content does not count.
  responses(
    "5 million lists in a forged seal",
    () =>
      `"input":[${user},{"type":"reasoning","summary":[],"encrypted_content":"${sealed("truewire.2.QUFB.", listOf(5_000_000, "[]"))}"}]`,
  ),
  responses(
    "5 million items in a compaction",
    () =>
      `"input":[${user},{"type":"compaction","encrypted_content":"${sealed("truewire.compaction.1.", listOf(5_000_000, "{}"))}"}]`,
    /100000 objects/,
  ),
  responses("30 MB of text", () => `"input":"${megabytes(30)}"`),
  responses("30 MB of instructions", () => `${input},"instructions":"${megabytes(30)}"`, /at most 4194304 characters/),
  responses("4 MB of instructions", () => `${input},"instructions":"${"x".repeat(4_000_000)}"`),

  messages("2 million numbers in messages", () => `"messages":${listOf(1_900_000, "1")}`, tooManyMessages),
  messages("300,000 messages", () => `"messages":${listOf(300_000, user)}`, counted),
  messages("30,000 messages", () => `"messages":${listOf(30_000, user)}`, tooManyMessages),
  messages("18,000 messages of one role", () => `"messages":${listOf(18_000, user)}`),
  messages(
    "40,000 blocks",
    () => `"messages":[{"role":"user","content":${listOf(40_000, text)}}]`,
    /messages.0.content: List should have at most 5000 items after validation, not 40000/,
  ),
  messages(
    "2 million numbers as blocks",
    () => `"messages":[{"role":"user","content":${listOf(1_900_000, "1")}}]`,
    /List should have at most 5000 items/,
  ),
  messages("300,000 tools", () => `${said},"tools":${listOf(300_000, '{"name":"f","input_schema":{}}')}`, counted),
  messages(
    "30,000 tools",
    () => `${said},"tools":${listOf(30_000, '{"name":"f","input_schema":{}}')}`,
    /tools: List should have at most 4096 items after validation, not 30000/,
  ),
  messages("a conversation 5 million deep", () => `"messages":${deep(5_000_000)}`, /1000 levels/),
  messages(
    "a call's input 900 deep",
    () =>
      `"messages":[${user},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{"a":${deep(900)}}}]},${user}]`,
  ),
  messages("90,000 unknown members", () => `${said},${keys(90_000, "k", "1")}`, /1000 unknown/),
  messages("2 million numbers as stop sequences", () => `${said},"stop_sequences":${listOf(1_900_000, "1")}`, /stop/),
  messages(
    "18,000 calls without results",
    () =>
      `"messages":[${user},${Array.from({ length: 4 }, (_, turn) => `{"role":"assistant","content":[${Array.from({ length: 4500 }, (__, at) => `{"type":"tool_use","id":"c${turn}_${at}","name":"f","input":{}}`).join()}]}`).join()},{"role":"user","content":[${Array.from({ length: 5000 }, (_, at) => `{"type":"tool_result","tool_use_id":"d${at}"}`).join()}]}]`,
  ),
  messages("30 MB of text", () => `"messages":[{"role":"user","content":"${megabytes(30)}"}]`),
];

function packed(name: string, members: () => string, told: RegExp): BodyBomb {
  const plain = chat(name, members, told);
  return { ...plain, make: (model) => ({ bytes: gzipSync(plain.make(model).bytes), encoding: "gzip" }) };
}
