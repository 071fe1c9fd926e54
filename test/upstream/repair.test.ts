import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { exact, lean } from "../../src/wire/apis/profile.ts";
import { repairCapture } from "../../src/judge/check/repair.ts";
import { answerId } from "../../src/wire/apis/ids.ts";
import { builtMain } from "../support/serve.ts";
import { waitMs } from "../support/hang.ts";

const options = { profile: exact, from: "auto", random: () => 0.5, now: 1_760_000_000 } as const;

/** An answer in OpenAI's own form: only its ids can be told from others. */
const created = 1_760_000_000;
const id = answerId("chatcmpl-", created, () => 0.3);

function chunk(choices: readonly object[], usage: object | null = null, rest: object = {}): string {
  const members = {
    id,
    object: "chat.completion.chunk",
    created,
    model: "gpt-audio-2025-08-28",
    service_tier: "default",
    system_fingerprint: null,
    choices,
    ...rest,
    usage,
  };
  const length = JSON.stringify(members).length;
  return `data: ${JSON.stringify({ ...members, obfuscation: "x".repeat((16 - (length % 16)) % 16) })}\n\n`;
}

const choice = (delta: object): object => ({ index: 0, delta, finish_reason: null });
const visible = (stream: string): string =>
  stream.replaceAll(/"obfuscation":"(\w*)"/g, (_, text: string) => `${text.length}`);

describe("an answer of OpenAI's own keeps its form", () => {
  const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
  const finish = chunk([{ index: 0, delta: {}, finish_reason: "stop" }]);
  const closing = finish + chunk([], usage);
  const done = "data: [DONE]\n\n";
  const answers: [string, string][] = [
    [
      "text",
      chunk([choice({ role: "assistant", content: "", refusal: null })]) +
        chunk([choice({ content: "Hi" })]) +
        closing +
        done,
    ],
    [
      "audio, whose farewell follows the usage",
      chunk([choice({ role: "assistant", refusal: null })]) +
        chunk([choice({ content: null, audio: { id: "audio_1", transcript: "Hi" } })]) +
        chunk([choice({ content: null, audio: { id: "audio_1", data: "AAAA" } })]) +
        closing +
        chunk([{ index: 0, delta: { audio: { expires_at: 1_760_003_600 } } }]) +
        done,
    ],
    [
      "moderation after the usage",
      chunk([choice({ role: "assistant", content: "", refusal: null })]) +
        chunk([choice({ content: "Hi" })]) +
        closing +
        chunk([], null, { moderation: { input: { flagged: false } } }) +
        done,
    ],
  ];

  test.each(answers)("%s", (_, stream) => {
    const { body, end } = repairCapture(stream, options);
    expect(visible(body)).toBe(visible(stream));
    expect(end.kind).toBe("done");
  });

  test.each(answers)("%s, with sorted keys and CRLF", (_, stream) => {
    const degraded = stream
      .split("\n")
      .map((line) =>
        line.startsWith("data: {") ? `data: ${JSON.stringify(sorted(JSON.parse(line.slice(6))))}` : line,
      );
    expect(visible(repairCapture(degraded.join("\r\n"), options).body)).toBe(visible(stream));
  });
});

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([name]) => name !== "obfuscation");
  return Object.fromEntries(
    entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, member]) => [name, sorted(member)]),
  );
}

test("completions are told from chat by what they hold, and a body stays a body", () => {
  const body = JSON.stringify({
    id: "cmpl-1",
    object: "text_completion",
    created: 1,
    model: "m",
    choices: [{ text: "Hi", finish_reason: "eos" }],
  });
  const repaired = repairCapture(body, { ...options, profile: lean });
  expect(JSON.parse(repaired.body)).toMatchObject({
    object: "text_completion",
    choices: [{ index: 0, text: "Hi", finish_reason: "stop" }],
  });
  expect(repaired.repairs.map(({ id }) => id)).toEqual(["choice-index", "finish-reason"]);
});

if (!existsSync(builtMain)) console.log(`skipped: ${builtMain} does not exist: npm run build`);
describe.skipIf(!existsSync(builtMain))("the command", () => {
  const broken =
    'data:{"model":"m","choices":[{"delta":{"content":"Hi"}}]}\r\n\r\ndata:{"model":"m","choices":[{"delta":{"content":"!"},"finish_reason":"eos"}]}\r\n\r\n';
  const run = (input: string, ...args: string[]): { stdout: string; stderr: string; status: number | null } =>
    spawnSync(process.execPath, [builtMain, "repair", ...args], { input, encoding: "utf8", timeout: waitMs });

  test("broken in, exact out, and on stderr what was repaired", () => {
    const { stdout, stderr, status } = run(broken);
    expect(status).toBe(0);
    expect(stdout.split("\n\n").map((line) => /"delta":(\{.*?\}),/.exec(line)?.[1] ?? line)).toEqual([
      '{"role":"assistant"}',
      '{"content":"Hi"}',
      '{"content":"!"}',
      "{}",
      "data: [DONE]",
      "",
    ]);
    for (const word of ["no-role", "no-id", "finish-reason", "no-done", "line-ends", "no-space"])
      expect(stderr).toContain(word);
    expect(run(stdout).stderr).toBe("Nothing had to be repaired.\n");
  });

  test("nothing was broken, but the bytes are others: said so", () => {
    const lean = run(broken).stdout;
    expect(run(lean, "--wire", "exact").stderr).toBe(
      "Nothing had to be repaired; the answer was written in the form of --wire.\n",
    );
  });

  test("one job a line", () => {
    const jobs = [
      { id: 1, endpoint: "/v1/chat/completions", body: broken },
      { id: "b", body: "data: [DONE]\n\n" },
    ];
    const { stdout } = run(jobs.map((job) => JSON.stringify(job)).join("\n"), "--jsonl", "--wire", "openai");
    const results = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { id: unknown; body: string; repairs: unknown[] });
    expect(results.map(({ id }) => id)).toEqual([1, "b"]);
    expect(results[0]?.body).toContain('"content":"Hi"');
    expect(results[0]?.repairs).toContainEqual({
      id: "no-role",
      sentence: "The role was missing at the start.",
      count: 1,
    });
    expect(results[1]?.body).toContain('"error"');
  });

  // A stream with an error was invented for it, with exit code 0.
  test.each(["hello\n", "<html><body>502 Bad Gateway</body></html>", '"data: {}"'])("%j is no answer", (input) => {
    expect(run(input)).toMatchObject({
      status: 1,
      stdout: "",
      stderr: "truewire: stdin has no answer of an API: repair reads an event stream (data: {…}) or a JSON body\n",
    });
  });

  test.each([[["--wire", "x"]], [["--from", "x"]], [["--jsonl"]]])(
    "%j with nonsense: one sentence, exit code 1",
    (args) => {
      const { stderr, status } = run("nonsense", ...args);
      expect(status).toBe(1);
      expect(stderr.trim().split("\n")).toHaveLength(1);
    },
  );
});
