/**
 * Plays the held-out prompts of eval.jsonl and eval-images.jsonl through `truewire serve` with the official client, greedy, and scores them by skill.
 *
 *     npm run eval:demo                           starts a server of its own on the bundled model
 *     npm run eval:demo -- --url http://host/v1   uses one that runs already
 *     npm run eval:demo -- --failures             prints every wrong answer, too
 *     npm run eval:demo -- --skill tool           only skills with this in their name
 *
 * How the prompts are made, and how they differ from training: heldout.py, and image_heldout.py for those with pictures, which are left out
 * if the server takes no images.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs, isDeepStrictEqual } from "node:util";
import { Ajv } from "ajv";
import OpenAI from "openai";

/** What a right answer is; every answer must also end by itself. */
interface Check {
  readonly exact?: string;
  readonly contains?: readonly string[];
  readonly starts?: string;
  readonly ends?: string;
  /** Names and arguments, in order. */
  readonly calls?: readonly { readonly name: string; readonly arguments: unknown }[];
  readonly no_calls?: boolean;
  readonly json?: unknown;
  /** There must be a thought, apart from the answer. */
  readonly reasoning?: boolean;
}

interface Item {
  readonly id: string;
  readonly skill: string;
  readonly request: Omit<OpenAI.ChatCompletionCreateParamsNonStreaming, "model">;
  readonly check: Check;
}

interface Score {
  right: number;
  asked: number;
  unstopped: number;
  /** Of requests whose form is enforced (a required call): those whose calls fit the schemas of the tools that they name. */
  enforced: number;
  fitting: number;
}

interface ListedModel {
  readonly id?: string;
  readonly architecture?: { readonly input_modalities?: readonly string[] };
}

type Answer = OpenAI.ChatCompletion.Choice;

/** The repository; `npm run` starts here. */
const root = process.cwd();
const maxTokens = 300;

const { values: options } = parseArgs({
  options: {
    url: { type: "string" },
    failures: { type: "boolean", default: false },
    skill: { type: "string", default: "" },
  },
});

const items = ["eval.jsonl", "eval-images.jsonl"]
  .flatMap((name) =>
    readFileSync(join(root, "models/demo", name), "utf8")
      .trim()
      .split("\n"),
  )
  .map((line) => JSON.parse(line) as Item)
  .filter((item) => item.skill.includes(options.skill));

const server = options.url === undefined ? await startServer() : undefined;
try {
  await play(options.url ?? server?.url ?? "");
} finally {
  server?.process.kill();
}

async function play(baseURL: string): Promise<void> {
  const client = new OpenAI({ baseURL, apiKey: process.env["OPENAI_API_KEY"] ?? "none", maxRetries: 0 });
  const { id: model = "demo", architecture } = ((await client.models.list()).data[0] ?? {}) as ListedModel;
  const takesImages = architecture?.input_modalities?.includes("image") !== false;
  if (!takesImages) console.log("The server takes no images: questions about pictures are left out.");
  const scores = new Map<string, Score>();
  const began = performance.now();
  let tokens = 0;
  for (const item of items) {
    if (!takesImages && item.skill.startsWith("image ")) continue;
    const score = scores.get(item.skill) ?? { right: 0, asked: 0, unstopped: 0, enforced: 0, fitting: 0 };
    scores.set(item.skill, score);
    score.asked++;
    const completion = await client.chat.completions.create({
      ...item.request,
      model,
      temperature: 0,
      max_tokens: maxTokens,
    });
    tokens += completion.usage?.completion_tokens ?? 0;
    const answer = completion.choices[0];
    if (answer === undefined) continue;
    if (answer.finish_reason === "length") score.unstopped++;
    if (item.request.tool_choice === "required") {
      score.enforced++;
      if (fits(answer, item.request.tools ?? [])) score.fitting++;
    }
    const wrong = whatIsWrong(answer, item.check);
    if (wrong === null) score.right++;
    else if (options.failures) printFailure(item, answer, wrong);
  }
  print(scores, tokens, (performance.now() - began) / 1000);
}

/** The first thing that is not as it should be, or null. */
function whatIsWrong(answer: Answer, check: Check): string | null {
  if (answer.finish_reason === "length") return "did not stop";
  const text = (answer.message.content ?? "").trim();
  const calls = (answer.message.tool_calls ?? []).flatMap((call) => (call.type === "function" ? [readCall(call)] : []));
  if (check.calls && !isDeepStrictEqual(calls, check.calls)) return "calls";
  if (check.no_calls && calls.length > 0) return "a call";
  if (check.exact !== undefined && text !== check.exact) return "text";
  if (check.contains?.some((part) => !text.includes(part))) return "text";
  if (check.starts !== undefined && !text.startsWith(check.starts)) return "beginning";
  if (check.ends !== undefined && !text.endsWith(check.ends)) return "end";
  if (check.json !== undefined && !isDeepStrictEqual(parsed(text), check.json)) return "JSON";
  if (check.reasoning && !thoughtOf(answer)) return "no thought";
  return null;
}

function fits(answer: Answer, tools: readonly OpenAI.ChatCompletionTool[]): boolean {
  const calls = (answer.message.tool_calls ?? []).flatMap((call) => (call.type === "function" ? [readCall(call)] : []));
  return (
    calls.length > 0 &&
    calls.every((call) => {
      const tool = tools.find((each) => each.type === "function" && each.function.name === call.name);
      return tool?.type === "function" && new Ajv().validate(tool.function.parameters ?? true, call.arguments);
    })
  );
}

function readCall(call: OpenAI.ChatCompletionMessageFunctionToolCall): { name: string; arguments: unknown } {
  return { name: call.function.name, arguments: parsed(call.function.arguments) };
}

function thoughtOf(answer: Answer): string {
  const message = answer.message as { reasoning_content?: string | null };
  return message.reasoning_content ?? "";
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function printFailure(item: Item, answer: Answer, wrong: string): void {
  const { content, tool_calls: calls } = answer.message;
  console.log(`${item.id}: ${wrong}`);
  const asked = JSON.stringify(item.request.messages.at(-1)?.content).replace(/(base64,.{20})[^"]*/g, "$1…");
  console.log(`  asked  ${asked}`);
  console.log(`  wanted ${JSON.stringify(item.check)}`);
  console.log(`  got    ${JSON.stringify(calls ? calls.map((call) => call) : content)} (${answer.finish_reason})`);
}

function print(scores: ReadonlyMap<string, Score>, tokens: number, seconds: number): void {
  const all: Score = { right: 0, asked: 0, unstopped: 0, enforced: 0, fitting: 0 };
  for (const [skill, score] of scores) {
    console.log(row(skill, score));
    all.right += score.right;
    all.asked += score.asked;
    all.unstopped += score.unstopped;
    all.enforced += score.enforced;
    all.fitting += score.fitting;
  }
  console.log(row("all", all));
  if (all.enforced > 0) console.log(`${all.fitting} of ${all.enforced} required calls fit their tool's schema`);
  console.log(`${tokens} tokens written in ${seconds.toFixed(0)} s, one request after the other`);
}

function row(skill: string, { right, asked, unstopped }: Score): string {
  const share = ((100 * right) / asked).toFixed(1);
  return `${skill.padEnd(14)} ${`${right}/${asked}`.padStart(8)} ${share.padStart(6)} %${unstopped > 0 ? `  ${unstopped} did not stop` : ""}`;
}

/** `truewire serve` without arguments serves the bundled model; it says where on its standard output or error. */
async function startServer(): Promise<{ url: string; process: ChildProcess }> {
  const child = spawn(
    process.execPath,
    [join(root, "dist/cli/main.js"), "serve", "--port", "0", "--threads", "1", "--slots", "1", "--log-level", "warn"],
    { stdio: ["ignore", "pipe", "pipe"] },
  );
  const url = await new Promise<string>((resolve, reject) => {
    let said = "";
    const listen = (chunk: Buffer): void => {
      said += chunk.toString();
      const found = /http:\/\/[\w.:[\]]+\/v1/.exec(said);
      if (found) resolve(found[0]);
    };
    child.stdout.on("data", listen);
    child.stderr.on("data", listen);
    child.once("exit", () => reject(new Error(`The server did not start:\n${said}`)));
  });
  return { url, process: child };
}
