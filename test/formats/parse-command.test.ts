import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { knownFormats } from "../../src/text/formats/known.ts";
import { writeGguf } from "../fixtures/gguf-writer.ts";
import { builtMain } from "../support/serve.ts";

// `truewire parse` and `truewire formats`, as built.
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "truewire-parse-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

async function run(args: readonly string[], input = ""): Promise<{ out: string; err: string; code: number | null }> {
  const child = spawn(process.execPath, [builtMain, ...args]);
  let [out, err] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (err += text));
  child.stdin.end(input);
  const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
  return { out, err, code };
}

function lines(out: string): unknown[] {
  return out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as unknown);
}

function file(name: string, content: string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

const call = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>';

describe("truewire parse", () => {
  test("prints the message", async () => {
    const { out, code } = await run(
      ["parse", "--format", "hermes", "--prefix", "<think>\\n"],
      `Hm.</think>Yes.${call}`,
    );
    expect(code).toBe(0);
    expect(JSON.parse(out)).toEqual({
      content: "Yes.",
      reasoning: "Hm.",
      tool_calls: [{ name: "f", arguments: '{"a": 1}' }],
    });
  });

  test("prints the events, which hold every character", async () => {
    const text = `A <tool_ca ${call} \n`;
    const events = lines((await run(["parse", "--format", "hermes", "--events"], text)).out);
    const raw = events.map((event) => {
      const { type, text = "", raw = "" } = event as { type: string; text?: string; raw?: string };
      return type === "markup" ? raw : text;
    });
    expect(raw.join("")).toBe(text);
    expect(events.at(-1)).toEqual({ type: "finish", choice: 0, reason: "tool-calls" });
  });

  test("with tools, a call of another name stays text, and stderr says so", async () => {
    const tools = file("tools.json", JSON.stringify([{ type: "function", function: { name: "g" } }]));
    const { out, err, code } = await run(["parse", "--format", "hermes", "--tools", tools], call);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toEqual({ content: call, reasoning: "", tool_calls: [] });
    expect(err).toContain('truewire: The model called "f", which the request does not have as a tool');
    const job = JSON.stringify({ id: 1, format: "hermes", text: call, tools: [{ name: "g" }] });
    expect(lines((await run(["parse", "--jsonl"], job)).out)).toEqual([
      { id: 1, content: call, reasoning: "", tool_calls: [], warnings: [expect.stringContaining('"f"') as string] },
    ]);
  });

  test("a custom tool's call has its input", async () => {
    const tools = file("custom.json", JSON.stringify([{ type: "custom", custom: { name: "f" } }]));
    const text = '<tool_call>{"name": "f", "arguments": {"input": "x = \\"1\\""}}</tool_call>';
    const { out } = await run(["parse", "--format", "hermes", "--tools", tools], text);
    expect(JSON.parse(out)).toMatchObject({ tool_calls: [{ name: "f", input: 'x = "1"' }] });
  });

  test("finds the format from a template, which may be in a model file", async () => {
    const source =
      "{% for m in messages %}{{ m.role }}: {{ m.content or '' }}{% for c in m.tool_calls or [] %}<go>{{ c.function | tojson }}</go>{% endfor %}\n{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}";
    const gguf = join(folder, "model.gguf");
    writeGguf(gguf, { "tokenizer.chat_template": { type: "string", value: source } }, []);
    const text = 'Well <go>{"name": "f", "arguments": {}}</go>';
    for (const template of [file("chat.jinja", source), gguf]) {
      const { out } = await run(["parse", "--template", template], text);
      expect(JSON.parse(out)).toMatchObject({ tool_calls: [{ name: "f", arguments: "{}" }] });
    }
  });

  test("one job a line, one result a line, whatever a line holds", async () => {
    const jobs = [
      { id: "a", format: "hermes", text: `Hi ${call}`, chunks: ["Hi ", call] },
      { id: "b", format: "nope", text: "" },
      { id: "c", format: "hermes" },
    ];
    const input = [...jobs.map((job) => JSON.stringify(job)), "", "no JSON"].join("\n");
    const { out, code } = await run(["parse", "--jsonl"], input);
    expect(code).toBe(1);
    expect(lines(out)).toEqual([
      { id: "a", content: "Hi ", reasoning: "", tool_calls: [{ name: "f", arguments: '{"a": 1}' }] },
      { id: "b", error: expect.stringContaining('format "nope" is not known; known are ') as string },
      { id: "c", error: "text: must be a string" },
      { id: null, error: expect.any(String) as string },
    ]);
  });

  test.each([
    [["parse"], "say --format NAME or --template FILE"],
    [["parse", "--format", "nope"], 'format "nope" is not known'],
  ])("%j says what is wrong", async (args, message) => {
    const { err, code } = await run(args, "x");
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining(`truewire: ${message}`) as string });
  });
});

describe("truewire formats", () => {
  test("lists every known format with a sample", async () => {
    const { out } = await run(["formats"]);
    for (const { id } of knownFormats) expect(out).toMatch(new RegExp(`^${id} +\\S`, "m"));
    expect(out).toMatch(/^hermes +.*\n(?: +.*\n)* +also called granite-4$/m);
    expect(out).toContain("<|channel|>analysis<|message|>…<|end|>");
  });

  test("prints the descriptions as JSON, complete", async () => {
    const { out } = await run(["formats", "--json"]);
    expect(JSON.parse(out)).toEqual(knownFormats);
  });
});
