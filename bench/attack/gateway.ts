import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request as httpRequest } from "node:http";
import type { RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import { withKey } from "../../test/keys/support.ts";
import { hostileBodies, validAnswers, validBodies } from "../../test/support/hostile-bodies.ts";
import { startTruewire } from "../../test/support/serve.ts";
import type { RunningTruewire } from "../../test/support/serve.ts";
import { storesNothing } from "../../test/support/stores-nothing.ts";
import type { Attack, AttackOutcome } from "./attack.ts";
import { memoryInUse, monitored } from "./local-model.ts";

/** What a server under attack is, for the code of one attack. */
export interface Attacked {
  readonly server: RunningTruewire;
  /** Notes a sentence if what must hold does not. */
  readonly expect: (holds: boolean, sentence: string) => void;
}

export interface Setup {
  /** How the upstream answers; it is served as the model `up`. */
  readonly upstream?: RequestListener;
  /** Members of the configuration of the upstream, as YAML on one line. */
  readonly upstreamOptions?: string;
  /** The key of the other client, if the configuration has keys. */
  readonly key?: string;
  /** Further models of the configuration, each as YAML on one line; called with a folder for their files. */
  readonly models?: (folder: string) => readonly string[];
  /** Further lines of `truewire.yaml`. */
  readonly config?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** A program that streams 200 chunks and then ends; `hold` in the message: it waits 3 seconds first. */
const steady = `
export default async function* ({ messages }) {
  const { content } = messages.at(-1);
  const text = typeof content === "string" ? content : (content[0]?.text ?? "");
  if (text.startsWith("hold"))
    await new Promise((resolve) => setTimeout(resolve, 3000));
  for (let at = 0; at < 200; at++) {
    yield at + " ";
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
`;

const json = { "content-type": "application/json" };
const patienceMs = 60_000;

export function chat(model: string, content: unknown, more: object = {}): RequestInit {
  const body = JSON.stringify({ model, messages: [{ role: "user", content }], ...more });
  return { method: "POST", headers: json, body, signal: AbortSignal.timeout(patienceMs) };
}

/** The status of an answer that came to its end, or why it did not. */
export async function outcomeOf(asked: Promise<Response>): Promise<{ readonly status: string; readonly text: string }> {
  try {
    const response = await asked;
    return { status: String(response.status), text: await response.text() };
  } catch (error) {
    const { name, cause } = error as Error;
    return {
      status: name === "TimeoutError" ? "no answer" : `cut (${String((cause as Error)?.message ?? name)})`,
      text: "",
    };
  }
}

/** `200 ×3, 503 ×2` */
export function counted(statuses: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const status of statuses) counts.set(status, (counts.get(status) ?? 0) + 1);
  return [...counts]
    .map(([status, count]) => (count === 1 ? status : `${status} ×${count.toLocaleString("en")}`))
    .join(", ");
}

/** Resident memory of the server's process in MiB; 0 where the system does not say. */
function memoryOf({ process: { pid } }: RunningTruewire, field: "VmRSS" | "VmHWM"): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    return Math.round(Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1]) / 1024);
  } catch {
    return 0;
  }
}

/**
 * Attacks a server of its own, while another client reads a stream, and with a request of another client afterwards. `attack`
 * resolves to what the attacker was answered.
 */
export function attackOn(
  name: string,
  setup: Setup,
  attack: (attacked: Attacked) => Promise<string>,
  slow = false,
): Attack {
  return {
    name,
    ...(slow && { slow }),
    async run(): Promise<AttackOutcome> {
      const begun = performance.now();
      const failures: string[] = [];
      const folder = mkdtempSync(join(tmpdir(), "truewire-attack-"));
      const program = join(folder, "steady.mjs");
      writeFileSync(program, steady);
      const upstream = createServer(setup.upstream ?? ((_, response) => response.end("{}")));
      await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
      const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`;
      const file = join(folder, "truewire.yaml");
      writeFileSync(
        file,
        `port: 0\nlogLevel: error\n${setup.config ?? ""}\nmodels:\n` +
          `  - { kind: program, name: steady, program: ${JSON.stringify(program)} }\n` +
          `  - { kind: upstream, name: up, url: ${JSON.stringify(url)}, models: { up: up }${setup.upstreamOptions ? `, ${setup.upstreamOptions}` : ""} }\n` +
          (setup.models?.(folder) ?? []).map((model) => `  - ${model}\n`).join(""),
      );
      const monitors = join(folder, "loops");
      const server = await startTruewire(["--config", file], { env: monitored(monitors, setup.env) });
      const before = memoryOf(server, "VmRSS");
      const inUse = await memoryInUse(monitors, server.process.pid ?? 0);
      try {
        const expect = (holds: boolean, sentence: string): void => void (holds || failures.push(sentence));
        const askSteady = (more: object = {}): ReturnType<typeof outcomeOf> => {
          const request = chat("steady", "Hi", more);
          const asked = setup.key === undefined ? request : withKey(setup.key, request);
          return outcomeOf(fetch(`${server.url}/v1/chat/completions`, asked));
        };
        const other = askSteady({ stream: true });
        const answered = await attack({ server, expect });
        const { status, text } = await other;
        const chunks = text.split('"content":"').length - 1;
        expect(
          chunks >= 200 && text.endsWith("data: [DONE]\n\n"),
          `The stream of another client was not complete: ${status}, ${chunks} chunks.`,
        );
        const last = await askSteady();
        expect(last.status === "200", `A request after the attack was answered with ${last.status}.`);
        expect(server.process.exitCode === null && server.process.signalCode === null, "The server has ended.");
        const worst = memoryOf(server, "VmHWM");
        const held = (await memoryInUse(monitors, server.process.pid ?? 0, inUse + 64)) - inUse;
        const after = memoryOf(server, "VmRSS");
        expect(held <= 64, `${Math.round(held)} MiB of memory are still in use.`);
        return {
          answered,
          others: `a stream of ${chunks} chunks; then ${last.status}`,
          memoryMiB: [before, worst, after],
          tookMs: Math.round(performance.now() - begun),
          failures,
        };
      } finally {
        await server.stop("SIGKILL");
        upstream.closeAllConnections();
        upstream.close();
        rmSync(folder, { recursive: true, force: true });
      }
    },
  };
}

const envelope = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "up" };

function frame(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

/** A stream of one event for each of N choices, where the request asks for one. */
function manyChoices(count: number): RequestListener {
  const choices = Array.from({ length: count }, (_, index) =>
    frame({ ...envelope, choices: [{ index, delta: { role: "assistant", content: "a" }, finish_reason: null }] }),
  );
  return (request, response) => {
    request.resume();
    response.end(
      `${choices.join("")}${frame({ ...envelope, choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })}data: [DONE]\n\n`,
    );
  };
}

/** Blocks of Messages that wait for the input of a call, each with a delta. */
function waitingBlocks(count: number): RequestListener {
  const events = [
    {
      type: "message_start",
      message: { id: "msg_1", model: "up", content: [], usage: { input_tokens: 1, output_tokens: 1 } },
    },
    { type: "content_block_start", index: 0, content_block: { type: "tool_use", id: "toolu_1", name: "f", input: {} } },
    { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: "{" } },
    ...Array.from({ length: count }, (_, at) => [
      { type: "content_block_start", index: at + 1, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: at + 1, delta: { type: "text_delta", text: "a" } },
      { type: "content_block_stop", index: at + 1 },
    ]).flat(),
    { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: "}" } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 1 } },
    { type: "message_stop" },
  ];
  const text = events.map((event) => `event: ${event.type}\n${frame(event)}`).join("");
  return (request, response) => void request.resume().on("end", () => response.end(text));
}

/** Posts `count` bodies of `megabytes` each at once. Resolves to their statuses. `fetch` would copy each body. */
function postLarge(url: string, count: number, megabytes: number): Promise<string[]> {
  const content = `hold${"x".repeat(megabytes * 1_000_000)}`;
  const body = Buffer.from(JSON.stringify({ model: "steady", max_tokens: 1, messages: [{ role: "user", content }] }));
  const headers = { ...json, "content-length": body.length };
  const post = (): Promise<string> =>
    new Promise((resolve) => {
      const options = { method: "POST", headers, agent: false, timeout: 90_000 };
      const request = httpRequest(`${url}/v1/chat/completions`, options, (response) => {
        response.resume().on("end", () => resolve(String(response.statusCode)));
      });
      request.on("timeout", () => {
        resolve("no answer");
        request.destroy();
      });
      // A request that is refused may break while it is still being sent; its answer has come before.
      request.on("error", ({ message }) => setTimeout(() => resolve(`cut (${message})`), 1000)).end(body);
    });
  return Promise.all(Array.from({ length: count }, post));
}

/** Sends small requests until `over`. Resolves to their statuses. */
async function smallMeanwhile(url: string, over: Promise<unknown>): Promise<string[]> {
  const statuses: string[] = [];
  const state = { isOver: false };
  void over.then(() => (state.isOver = true));
  do {
    statuses.push((await outcomeOf(fetch(`${url}/v1/chat/completions`, chat("steady", "Hi")))).status);
  } while (!state.isOver);
  return statuses;
}

async function largeBodies({ server, expect }: Attacked, count: number, megabytes: number): Promise<string> {
  const large = postLarge(server.url, count, megabytes);
  const small = await smallMeanwhile(server.url, large);
  const statuses = await large;
  expect(
    statuses.every((status) => /^(?:200|503)$/.test(status)),
    `Not all large bodies were answered: ${counted(statuses)}.`,
  );
  expect(statuses.includes("200"), "No large body was served.");
  expect(
    small.every((status) => status === "200"),
    `Small requests meanwhile: ${counted(small)}.`,
  );
  return `${counted(statuses)}; small ones meanwhile ${counted(small)}`;
}

/** Sends a request by hand: `fetch` allows neither an absolute URL nor another `Host`. */
function rawStatus(url: string, path: string, headers: Record<string, string>): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const request = httpRequest({ hostname, port, path, headers, method: "GET" }, (response) => {
      response.resume();
      resolve(String(response.statusCode));
    });
    request.on("error", ({ message }) => resolve(`cut (${message})`)).end();
  });
}

/** What clients, upstreams and workers do to a gateway. */
export const attacks: readonly Attack[] = [
  attackOn(
    "an upstream with a key sends 50,000 choices",
    { upstream: manyChoices(50_000), upstreamOptions: "key: sk-0123456789abcdef" },
    async ({ server, expect }) => {
      const { status, text } = await outcomeOf(
        fetch(`${server.url}/v1/chat/completions`, chat("up", "Hi", { stream: true })),
      );
      expect(text.endsWith("data: [DONE]\n\n"), "The answer has no end.");
      return `${status}, ${text.split('"content":"a"').length - 1} of 50,000 choices`;
    },
  ),
  attackOn(
    "an upstream sends 50,000 blocks that wait for a call",
    { upstream: waitingBlocks(50_000), upstreamOptions: "api: messages, key: sk-0123456789abcdef" },
    async ({ server, expect }) => {
      const { status, text } = await outcomeOf(
        fetch(`${server.url}/v1/chat/completions`, chat("up", "Hi", { stream: true })),
      );
      expect(text.endsWith("data: [DONE]\n\n") && !text.includes('"error"'), "The answer is not complete.");
      return status;
    },
  ),
  attackOn(
    "an upstream numbers a part of a summary 4,294,967,294",
    {
      upstreamOptions: "api: responses",
      upstream: (request, response) => {
        request.resume();
        const event = { type: "response.reasoning_summary_text.delta", item_id: "rs_1", output_index: 0, delta: "a" };
        response.end(`${frame({ ...event, summary_index: 4_294_967_294 })}data: [DONE]\n\n`);
      },
    },
    async ({ server, expect }) => {
      const { status } = await outcomeOf(fetch(`${server.url}/v1/chat/completions`, chat("up", "Hi")));
      expect(status === "200", `It was answered with ${status}.`);
      return status;
    },
  ),
  attackOn(
    "bodies with hostile toString, then, __proto__ at every place",
    {},
    async ({ server, expect }) => {
      const statuses: string[] = [];
      for (const { path, body } of validBodies("up")) {
        for (const [at, { name, text }] of [...hostileBodies(body)].entries()) {
          // Every seventh: each kind of value at each place would take a minute.
          if (at % 7 !== 0 && !/messages.0.content.0.type: \{"toString/.test(name)) continue;
          const answer = await outcomeOf(fetch(server.url + path, { method: "POST", headers: json, body: text }));
          // 501: the upstream cannot do it. 502, which Messages does not have: this upstream answers {} to everything.
          const isOfUpstream = /The upstream's answer (?:has no choice|ended too early)/.test(answer.text);
          const status = answer.status === "500" && isOfUpstream ? "502" : answer.status;
          if (/^5(?!01|02)|^[cn]/.test(status))
            expect(false, `${path}: ${name}: ${status} ${answer.text.slice(0, 200)}`);
          statuses.push(status);
        }
      }
      return counted(statuses.toSorted());
    },
    true,
  ),
  attackOn('"type": {"toString": 1} in a request of Messages', {}, async ({ server, expect }) => {
    const messages = [{ role: "user", content: [{ type: { toString: 1 }, text: "Hi" }] }];
    const init = { method: "POST", headers: json, body: JSON.stringify({ model: "steady", max_tokens: 1, messages }) };
    const { status } = await outcomeOf(fetch(`${server.url}/v1/messages`, init));
    expect(status === "400", `It was answered with ${status}.`);
    return status;
  }),
  attackOn(
    "an upstream's whole answer has hostile members",
    {
      upstream: (request, response) => {
        request.resume();
        const { whole } = validAnswers.chat;
        response.setHeader("content-type", "application/json");
        response.end(JSON.stringify(whole).replace('"token":"Hi"', '"token":{"toString":1}'));
      },
    },
    async ({ server, expect }) => {
      const { status } = await outcomeOf(
        fetch(`${server.url}/v1/chat/completions`, { ...chat("up", "Hi"), signal: AbortSignal.timeout(5000) }),
      );
      expect(/^\d+$/.test(status), `It was answered with: ${status}.`);
      return status;
    },
  ),
  attackOn("12 bodies of 8 MB at once, with a budget of 32 MB", { config: "bodyBudget: 32MB" }, (attacked) =>
    largeBodies(attacked, 12, 8),
  ),
  attackOn(
    "40 bodies of 30 MB at once, with a heap of 1 GB",
    { env: { NODE_OPTIONS: "--max-old-space-size=1024" } },
    (attacked) => largeBodies(attacked, 40, 30),
    true,
  ),
  attackOn("110 bodies of 30 MB at once", {}, (attacked) => largeBodies(attacked, 110, 30), true),
  attackOn(
    "an upstream sends comments forever",
    {
      upstreamOptions: "timeouts: { firstEvent: 1s, idle: 500ms }",
      upstream: (request, response) => {
        request.resume();
        response.write(frame({ ...envelope, choices: [{ index: 0, delta: { role: "assistant", content: "a" } }] }));
        const timer = setInterval(() => response.write(": ping\n\n\n"), 50);
        response.on("close", () => clearInterval(timer));
      },
    },
    async ({ server, expect }) => {
      const init = { ...chat("up", "Hi", { stream: true }), signal: AbortSignal.timeout(5000) };
      const { status, text } = await outcomeOf(fetch(`${server.url}/v1/chat/completions`, init));
      expect(text.includes("sent no event"), `The stream continues: ${status}.`);
      return text.includes("sent no event") ? "200, an error in the stream" : status;
    },
  ),
  attackOn(
    "an upstream's Retry-After of 10^20 seconds",
    {
      upstream: (request, response) => {
        request.resume();
        response.writeHead(429, { "retry-after": "1".padEnd(21, "0") }).end('{"error":{"message":"Later."}}');
      },
    },
    async ({ server, expect }) => {
      const response = await fetch(`${server.url}/v1/chat/completions`, chat("up", "Hi"));
      const seconds = Number(response.headers.get("retry-after"));
      expect(seconds <= 86_400, `The client gets the instruction to wait ${seconds} seconds.`);
      return `${response.status}, Retry-After: ${seconds}`;
    },
  ),
  attackOn("an absolute URL with the host of another server", {}, async ({ server, expect }) => {
    const status = await rawStatus(server.url, "http://evil.example/v1/models", { host: "localhost" });
    expect(status.startsWith("4"), `It was answered with ${status}.`);
    return status;
  }),
  attackOn(
    "a worker of two is stopped (SIGSTOP)",
    {},
    async ({ server: { url }, expect }) => {
      const folder = mkdtempSync(join(tmpdir(), "truewire-attack-"));
      const file = join(folder, "truewire.yaml");
      writeFileSync(file, stringify({ port: 0, workers: 2, ...storesNothing, models: [`${url}/v1`] }));
      const server = await startTruewire(["--config", file]);
      const { pid } = server.process;
      const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number);
      const [worker] = children;
      await new Promise((resolve) => setTimeout(resolve, 3000));
      process.kill(worker ?? 0, "SIGSTOP");
      const begun = performance.now();
      let tried = 0;
      let unanswered = 0;
      // Twelve answers in a row, each on a connection of its own, are from both workers.
      for (let inARow = 0; inARow < 12 && performance.now() - begun < patienceMs; tried++) {
        const init = { headers: { connection: "close" }, signal: AbortSignal.timeout(2000) };
        const { status } = await outcomeOf(fetch(`${server.url}/v1/models`, init));
        inARow = status === "200" ? inARow + 1 : 0;
        if (status !== "200") unanswered++;
        if (inARow === 12 && performance.now() - begun < 12_000) inARow = 11;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      const isGone = !readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").includes(String(worker));
      await server.stop("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
      expect(isGone, "The stopped worker is still one of the server's.");
      return `${tried - unanswered} × 200, ${unanswered} unanswered; the worker ${isGone ? "was replaced" : "is still there"}`;
    },
    true,
  ),
];
