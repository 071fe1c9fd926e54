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
const chatPath = "/v1/chat/completions";

function chat(name: string, members: () => string, told?: RegExp): BodyBomb {
  const make = (model: string): { readonly bytes: Buffer } => ({
    bytes: Buffer.from(`{"model":${JSON.stringify(model)},"max_tokens":4,${members()}}`),
  });
  return told ? { name, path: chatPath, make, told } : { name, path: chatPath, make };
}

function listOf(count: number, item: string): string {
  return `[${`${item},`.repeat(count - 1)}${item}]`;
}

function keys(count: number, prefix: string, value: string): string {
  return Array.from({ length: count }, (_, at) => `"${prefix}${at}":${value}`).join(",");
}

const messages = `"messages":[${user}]`;
const tool = '{"type":"function","function":{"name":"f"}}';
const call = '{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}';
const schema = '{"type":"object","properties":{"a":{"type":"string"}}}';

/** Those that took a server's memory or its event loop. The last ones are as large as is allowed, and must be answered. */
export const bodyBombs: readonly BodyBomb[] = [
  packed("15 million numbers in messages, as 29 kB of gzip", () => `"messages":${listOf(15_000_000, "1")}`, /values/),
  chat("3 million numbers in messages", () => `"messages":${listOf(3_000_000, "1")}`, /2000000 values/),
  chat("2 million numbers in messages", () => `"messages":${listOf(1_900_000, "1")}`, /maximum length 20000/),
  chat("20 MB of stop strings", () => `${messages},"stop":${listOf(5_000_000, '"a"')}`, /300000 strings/),
  chat("2 million numbers in stop", () => `${messages},"stop":${listOf(1_900_000, "1")}`, /stop/),
  chat("2,000 stop strings", () => `${messages},"stop":${listOf(2000, '"a"')}`, /maximum length 1000/),
  chat(
    "1.5 million template variables",
    () => `${messages},"chat_template_kwargs":{${keys(1_500_000, "k", "1")}}`,
    /100000 members/,
  ),
  chat("a million metadata", () => `${messages},"metadata":{${keys(1_000_000, "k", '"v"')}}`, /members|strings/),
  chat("90,000 metadata", () => `${messages},"metadata":{${keys(90_000, "k", "1")}}`, /at most 16/),
  chat("a million unknown members", () => `${messages},${keys(1_000_000, "k", "1")}`, /members/),
  chat("90,000 unknown members", () => `${messages},${keys(90_000, "k", "1")}`, /1000 unknown/),
  chat("300,000 tools", () => `${messages},"tools":${listOf(300_000, tool)}`, /objects and lists|members|strings/),
  chat("20,000 tools", () => `${messages},"tools":${listOf(20_000, tool)}`, /maximum length 4096/),
  chat("a million empty messages", () => `"messages":${listOf(1_000_000, "{}")}`, /100000 objects/),
  chat("90,000 empty messages", () => `"messages":${listOf(90_000, "{}")}`, /maximum length 20000/),
  chat("400,000 messages", () => `"messages":${listOf(400_000, user)}`, /objects and lists|members|strings/),
  chat(
    "300,000 calls",
    () => `"messages":[${user},{"role":"assistant","tool_calls":${listOf(300_000, call)}}]`,
    /objects and lists|members|strings/,
  ),
  chat("lists 5 million deep", () => `"messages":${"[".repeat(5_000_000)}${"]".repeat(5_000_000)}`, /1000 levels/),
  chat("a schema 900 deep", () => `${messages},"user_data":${'{"a":'.repeat(900)}1${"}".repeat(900)}`),
  chat(
    "10 MB of one control token",
    () => `"messages":[{"role":"user","content":"${"<|im_end|>".repeat(1_000_000)}"}]`,
  ),
  chat("30 MB of text", () => `"messages":[{"role":"user","content":"${"x".repeat(30 * 2 ** 20)}"}]`),
  chat("15 MB of escapes", () => `"messages":[{"role":"user","content":"${'\\"'.repeat(7_500_000)}"}]`),
  chat("18,000 messages", () => `"messages":${listOf(18_000, user)}`),
  chat(
    "25,000 parts",
    () => `"messages":${listOf(5, `{"role":"user","content":${listOf(5000, '{"type":"text","text":"x"}')}}`)}`,
  ),
  chat("a million numbers in an unknown member", () => `${messages},"numbers":${listOf(1_000_000, "0.5")}`),
  chat("4,000 tools", () => `${messages},"tools":${listOf(4000, tool.replace("}}", `,"parameters":${schema}}}`))}`),
];

function packed(name: string, members: () => string, told: RegExp): BodyBomb {
  const plain = chat(name, members, told);
  return { ...plain, make: (model) => ({ bytes: gzipSync(plain.make(model).bytes), encoding: "gzip" }) };
}
