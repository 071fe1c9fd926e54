// The CPU time of writing one delta: with the stream writers alone, and through a socket to a client in another process. CPU time is user
// and system time together, of the writing process.
//
//   npm run bench wire [-- --deltas 500000] [--rounds 5] [--only writer|socket]
//
// Targets: at most 0.5 µs of CPU a delta for the writer alone (profile lean, text); Responses and Messages at most 1.3 times chat.
import { fork } from "node:child_process";
import { once } from "node:events";
import { createServer, get } from "node:http";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { GenerationEvent } from "../src/wire/core/events.ts";
import { runSync } from "../src/wire/core/steps.ts";
import { chatPort } from "../src/wire/apis/chat/port.ts";
import { completionsPort } from "../src/wire/apis/completions/port.ts";
import { messagesPort } from "../src/wire/apis/messages/port.ts";
import type { Port, StreamWriter } from "../src/wire/apis/port.ts";
import { exact, lean } from "../src/wire/apis/profile.ts";
import type { Profile } from "../src/wire/apis/profile.ts";
import { responsesPort } from "../src/wire/apis/responses/port.ts";

const { values } = parseArgs({
  options: {
    deltas: { type: "string", default: "500000" },
    rounds: { type: "string", default: "5" },
    only: { type: "string" },
    serve: { type: "boolean", default: false },
  },
});
const deltaCount = Number(values.deltas);
const rounds = Number(values.rounds);

/** Tokens as models write them: short words, sometimes a quote, a line feed or a character outside ASCII. */
const words = [" the", " quick", "ly", ",", ' "', "\n", " brown", " naïve", " fox", "."];

interface Case {
  readonly name: string;
  readonly port: Port;
  readonly profile: Profile;
  /** Members of the request that change the form of its answer. */
  readonly asked: object;
  readonly event: (index: number) => GenerationEvent;
}

const text = (index: number): GenerationEvent => ({
  type: "text-delta",
  choice: 0,
  text: words[index % words.length] ?? "",
});
const token = (index: number): GenerationEvent => {
  const word = { token: words[index % words.length] ?? "", logprob: -0.25, bytes: [32, 97, 98] };
  return { type: "text-delta", choice: 0, text: word.token, logprobs: [{ ...word, top: [word, word] }] };
};
const argumentsDelta = (index: number): GenerationEvent => ({
  type: "tool-call-delta",
  choice: 0,
  index: 0,
  arguments: words[index % words.length] ?? "",
});

const cases: readonly Case[] = [
  { name: "chat, lean: text", port: chatPort, profile: lean, asked: {}, event: text },
  {
    name: "chat, lean: text, with usage: null",
    port: chatPort,
    profile: lean,
    asked: { stream_options: { include_usage: true } },
    event: text,
  },
  { name: "chat, lean: arguments of a call", port: chatPort, profile: lean, asked: {}, event: argumentsDelta },
  {
    name: "chat, lean: text with 2 top logprobs",
    port: chatPort,
    profile: lean,
    asked: { logprobs: true, top_logprobs: 2 },
    event: token,
  },
  { name: "chat, exact: text (obfuscated)", port: chatPort, profile: exact, asked: {}, event: text },
  { name: "completions, lean: text", port: completionsPort, profile: lean, asked: {}, event: text },
  { name: "responses, lean: text", port: responsesPort, profile: lean, asked: {}, event: text },
  {
    name: "responses, lean: arguments of a call",
    port: responsesPort,
    profile: lean,
    asked: {},
    event: argumentsDelta,
  },
  { name: "responses, exact: text (obfuscated)", port: responsesPort, profile: exact, asked: {}, event: text },
  { name: "messages, lean: text", port: messagesPort, profile: lean, asked: {}, event: text },
  { name: "messages, lean: arguments of a call", port: messagesPort, profile: lean, asked: {}, event: argumentsDelta },
  { name: "messages, exact: text (padded)", port: messagesPort, profile: exact, asked: {}, event: text },
];

/** What each API's request cannot do without. */
const needed = { messages: [{ role: "user", content: "Hi" }], prompt: "Hi", input: "Hi", max_tokens: 4096 };
const neededBy: Readonly<Record<string, readonly (keyof typeof needed)[]>> = {
  chat: ["messages"],
  completions: ["prompt"],
  responses: ["input"],
  messages: ["messages", "max_tokens"],
};

function openedWriter({ port, profile, asked, event }: Case): StreamWriter {
  const model = "some-model-8b-instruct";
  const body = { model, stream: true, ...asked };
  for (const name of neededBy[port.name] ?? []) Object.assign(body, { [name]: needed[name] });
  const header = (name: string): string | undefined => (name === "anthropic-version" ? "2023-06-01" : undefined);
  const { streamWriter } = runSync(port.readRequest(body, "req_bench", { profile, header }));
  const writer = streamWriter({ profile, created: 1_800_000_000, model, settings: {}, random: Math.random });
  writer.write([{ type: "start", choice: 0 }]);
  if (event === argumentsDelta)
    writer.write([{ type: "tool-call-start", choice: 0, index: 0, id: "call_0", name: "f" }]);
  return writer;
}

function cpuMicroseconds(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

const median = (list: readonly number[]): number => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)] ?? 0;

/** CPU µs per delta, with one event in each batch. The lengths of the texts are summed, so that every text is really written. */
function writerAlone(one: Case): number {
  const batches = Array.from({ length: 1000 }, (_, index) => [one.event(index)]);
  let written = 0;
  const measured = Array.from({ length: rounds + 1 }, () => {
    const writer = openedWriter(one);
    const start = cpuMicroseconds();
    for (let index = 0; index < deltaCount; index++) {
      const batch = batches[index % batches.length];
      if (batch) written += writer.write(batch).length;
    }
    return (cpuMicroseconds() - start) / deltaCount;
  });
  if (written === 0) throw new Error("Nothing was written.");
  // The first round is slower: the code is still being compiled.
  return median(measured.slice(1));
}

/** The same chunk with JSON.stringify, as a server without prepared text writes it. */
function fromScratch(): number {
  let written = 0;
  const measured = Array.from({ length: rounds + 1 }, () => {
    const start = cpuMicroseconds();
    for (let index = 0; index < deltaCount; index++) {
      const choices = [
        { index: 0, delta: { content: words[index % words.length] }, logprobs: null, finish_reason: null },
      ];
      const chunk = {
        id: "chatcmpl-E0000abcdefghijklmnopqrstuvwx",
        object: "chat.completion.chunk",
        created: 1_800_000_000,
        model: "some-model-8b-instruct",
        system_fingerprint: null,
        choices,
      };
      written += `data: ${JSON.stringify(chunk)}\n\n`.length;
    }
    return (cpuMicroseconds() - start) / deltaCount;
  });
  if (written === 0) throw new Error("Nothing was written.");
  return median(measured.slice(1));
}

/** The process that is measured: `/ready` text or written, `perWrite` deltas in each write, one write in each turn of the event loop. */
async function serve(): Promise<void> {
  const server = createServer((request, response) => {
    const { searchParams } = new URL(request.url ?? "/", "http://localhost");
    const perWrite = Number(searchParams.get("perWrite"));
    const count = Number(searchParams.get("deltas"));
    const isWritten = searchParams.get("kind") === "written";
    const one = cases.find(({ name }) => name === searchParams.get("case"));
    if (!one) throw new Error("There is no such case.");
    const writer = openedWriter(one);
    const batch = Array.from({ length: perWrite }, (_, index) => one.event(index));
    const ready = openedWriter(one).write(batch);
    response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
    const start = cpuMicroseconds();
    let sent = 0;
    const next = (): void => {
      if (sent >= count) {
        response.end();
        process.send?.((cpuMicroseconds() - start) / sent);
        return;
      }
      sent += perWrite;
      if (response.write(isWritten ? writer.write(batch) : ready)) setImmediate(next);
      else response.once("drain", next);
    };
    next();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  process.send?.(typeof address === "object" && address ? address.port : 0);
}

async function throughSocket(): Promise<void> {
  const child = fork(fileURLToPath(import.meta.url), ["--serve"]);
  try {
    const [port]: unknown[] = await once(child, "message");
    const measure = async (name: string, kind: "ready" | "written", perWrite: number): Promise<number> => {
      const deltas = Math.min(deltaCount, 50_000 * Math.sqrt(perWrite));
      const cpuTime = once(child, "message");
      await new Promise<void>((resolve, reject) => {
        const path = `/?case=${encodeURIComponent(name)}&kind=${kind}&perWrite=${perWrite}&deltas=${Math.round(deltas)}`;
        get({ port: Number(port), host: "127.0.0.1", path }, (response) => {
          response.resume().once("end", resolve).once("error", reject);
        }).once("error", reject);
      });
      const [cpu]: unknown[] = await cpuTime;
      return Number(cpu);
    };
    const names = ["chat, lean: text", "responses, lean: text", "messages, lean: text"];
    console.log(`\nthrough a socket${" ".repeat(30)} ready text   written   difference relative to chat`);
    for (const perWrite of [1, 4, 16]) {
      const ready = names.map((): number[] => []);
      const written = names.map((): number[] => []);
      // In turns, so that other work on the machine affects all.
      for (let round = 0; round <= rounds; round++) {
        for (const [at, name] of names.entries()) {
          ready[at]?.push(await measure(name, "ready", perWrite));
          written[at]?.push(await measure(name, "written", perWrite));
        }
      }
      const chat = median(written[0]?.slice(1) ?? []);
      for (const [at, name] of names.entries()) {
        const [a, b] = [median(ready[at]?.slice(1) ?? []), median(written[at]?.slice(1) ?? [])];
        const row = `  ${name}, ${perWrite} a write`.padEnd(44);
        const times = `${a.toFixed(2).padStart(8)} µs ${b.toFixed(2).padStart(6)} µs ${(b - a).toFixed(2).padStart(9)} µs`;
        console.log(`${row} ${times} ${(b / chat).toFixed(2).padStart(12)}`);
      }
    }
  } finally {
    child.kill();
  }
}

if (values.serve) {
  await serve();
} else {
  console.log(`CPU time a delta; median of ${rounds} rounds, Node ${process.version}`);
  if (values.only !== "socket") {
    console.log(`\nthe writer alone, ${deltaCount} deltas, one a batch`);
    for (const one of cases) console.log(`  ${one.name.padEnd(42)} ${writerAlone(one).toFixed(3).padStart(8)} µs`);
    console.log(`  ${"JSON.stringify of a whole chunk instead".padEnd(42)} ${fromScratch().toFixed(3).padStart(8)} µs`);
  }
  if (values.only !== "writer") await throughSocket();
}
