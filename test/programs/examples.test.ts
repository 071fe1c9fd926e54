import { execFile } from "node:child_process";
import { promisify } from "node:util";
import OpenAI from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RunningTruewire, startTruewire } from "../support/serve.ts";

const run = promisify(execFile);

/** What the examples that need a model talk to: a program that asks for a tool once and then answers with its result. */
const model = new URL("model-for-examples.js", import.meta.url).pathname;

let upstream: RunningTruewire;
let examples: RunningTruewire;
let client: OpenAI;

beforeAll(async () => {
  upstream = await startTruewire([model]);
  const url = `${upstream.url}/v1`;
  const name = "model-for-examples";
  const env = { MODEL_URL: url, MODEL: name, SMALL_URL: url, SMALL_MODEL: name, LARGE_URL: url, LARGE_MODEL: name };
  const names = ["echo", "retrieval", "router", "agent", "ai-sdk-model"];
  examples = await startTruewire(
    names.map((name) => `examples/${name}.ts`),
    { env },
  );
  client = new OpenAI({ baseURL: `${examples.url}/v1`, apiKey: "none", maxRetries: 0 });
});

afterAll(async () => {
  await examples?.stop();
  await upstream?.stop();
});

async function say(name: string, content: string): Promise<OpenAI.ChatCompletionMessage> {
  const stream = client.chat.completions.stream({ model: name, messages: [{ role: "user", content }] });
  return stream.finalMessage();
}

test("echo", async () => {
  expect((await say("echo", "Hello big world")).content).toBe("Hello big world");
});

test("retrieval quotes the paragraph that fits, with its source", async () => {
  expect((await say("retrieval", "Why does bread rise?")).content).toContain("yeast turns sugar into carbon dioxide");
  expect((await say("retrieval", "Why does bread rise?")).content).toContain("[bread.md]");
});

test("router sends a question on and its answer back", async () => {
  expect((await say("router", "hi")).content).toBe("You said: hi");
});

test("agent runs the tool that the model asks for and answers with its result", async () => {
  expect((await say("agent", "use add")).content).toBe("The tool said: 3");
});

test("a model of the AI SDK", async () => {
  expect((await say("ai-sdk-model", "hi")).content).toBe("You said: hi");
});

test.each([
  ["curl.sh", "sh", /"content":"You "/],
  ["openai-sdk.ts", "jiti", /^You said: hi\n$/],
  ["ai-sdk.ts", "jiti", /^You said: hi\n$/],
  ["langchain.ts", "jiti", /^You said: hi\n$/],
])("the client %s", async (file, by, expected) => {
  const env = { ...process.env, BASE_URL: `${upstream.url}/v1`, MODEL: "model-for-examples" };
  const [command, ...args] = by === "sh" ? ["sh"] : [process.execPath, "node_modules/jiti/lib/jiti-cli.mjs"];
  const { stdout } = await run(command as string, [...args, `examples/clients/${file}`, "hi"], { env });
  expect(stdout).toMatch(expected);
});

const python = await run("python3", ["-c", "import openai"]).then(
  () => true,
  () => false,
);
if (!python) console.log("skipped: examples/clients/openai_sdk.py wants python3 with the openai package");
test.skipIf(!python)("the client openai_sdk.py", async () => {
  const env = { ...process.env, BASE_URL: `${upstream.url}/v1`, MODEL: "model-for-examples" };
  expect((await run("python3", ["examples/clients/openai_sdk.py", "hi"], { env })).stdout).toBe("You said: hi\n");
});
