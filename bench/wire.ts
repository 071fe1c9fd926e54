// The CPU time of writing one delta: with the stream writers alone, and through a socket to a client in another process. CPU time is user
// and system time together, of the writing process.
//
//   npm run bench wire [-- --deltas 500000] [--rounds 5] [--only writer|socket]
//
// Target: at most 0.5 µs of CPU a delta for the writer alone (profile lean, text).
import { fork } from "node:child_process";
import { once } from "node:events";
import { createServer, get } from "node:http";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { GenerationEvent } from "../src/generation/event.ts";
import { ChatStreamWriter } from "../src/wire/chat/stream-writer.ts";
import { CompletionStreamWriter } from "../src/wire/completions/stream-writer.ts";
import type { ChoicesContext } from "../src/wire/choices-answer.ts";
import type { StreamWriter } from "../src/wire/port.ts";
import { exact, lean } from "../src/wire/profile.ts";
import type { Profile } from "../src/wire/profile.ts";

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

/** Tokens as models write them: short words, now and then a quote, a line feed, a character beyond ASCII. */
const words = [" the", " quick", "ly", ",", ' "', "\n", " brown", " naïve", " fox", "."];

interface Case {
  readonly name: string;
  readonly Writer: new (context: ChoicesContext) => StreamWriter;
  readonly profile: Profile;
  readonly usage: boolean;
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
const piece = (index: number): GenerationEvent => ({
  type: "tool-call-delta",
  choice: 0,
  index: 0,
  arguments: words[index % words.length] ?? "",
});

const cases: readonly Case[] = [
  { name: "chat, lean: text", Writer: ChatStreamWriter, profile: lean, usage: false, event: text },
  { name: "chat, lean: text, with usage: null", Writer: ChatStreamWriter, profile: lean, usage: true, event: text },
  { name: "chat, lean: arguments of a call", Writer: ChatStreamWriter, profile: lean, usage: false, event: piece },
  { name: "chat, lean: text with 2 top logprobs", Writer: ChatStreamWriter, profile: lean, usage: false, event: token },
  { name: "chat, openai: text (obfuscated)", Writer: ChatStreamWriter, profile: exact, usage: false, event: text },
  { name: "completions, lean: text", Writer: CompletionStreamWriter, profile: lean, usage: false, event: text },
];

function contextOf({ Writer, profile, usage, event }: Case): ChoicesContext {
  return {
    profile,
    asked: {
      stream: true,
      includeUsage: usage,
      logprobs: event === token,
      namedToolChoice: false,
      legacyFunctions: false,
      includeTimings: false,
    },
    id: `${Writer === ChatStreamWriter ? "chatcmpl" : "cmpl"}-E0000abcdefghijklmnopqrstuvwx`,
    created: 1_800_000_000,
    model: "some-model-8b-instruct",
    settings: {},
    random: Math.random,
  };
}

function openedWriter(one: Case): StreamWriter {
  const writer = new one.Writer(contextOf(one));
  writer.write([{ type: "start", choice: 0 }]);
  if (one.event === piece) writer.write([{ type: "tool-call-start", choice: 0, index: 0, id: "call_0", name: "f" }]);
  return writer;
}

function cpuMicroseconds(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

const median = (list: readonly number[]): number => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)] ?? 0;

/** CPU µs a delta, one event a batch. The texts' lengths are summed, so that none is left unwritten. */
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

/** The process that is measured: `/ready` text or written, so many deltas a write, one write a turn of the event loop. */
async function serve(): Promise<void> {
  const [one] = cases;
  if (!one) return;
  const server = createServer((request, response) => {
    const { searchParams } = new URL(request.url ?? "/", "http://localhost");
    const perWrite = Number(searchParams.get("perWrite"));
    const count = Number(searchParams.get("deltas"));
    const isWritten = searchParams.get("kind") === "written";
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
    const measure = async (kind: "ready" | "written", perWrite: number): Promise<number> => {
      const deltas = Math.min(deltaCount, 50_000 * Math.sqrt(perWrite));
      const told = once(child, "message");
      await new Promise<void>((resolve, reject) => {
        const path = `/?kind=${kind}&perWrite=${perWrite}&deltas=${Math.round(deltas)}`;
        get({ port: Number(port), host: "127.0.0.1", path }, (response) => {
          response.resume().once("end", resolve).once("error", reject);
        }).once("error", reject);
      });
      const [cpu]: unknown[] = await told;
      return Number(cpu);
    };
    console.log("\nthrough a socket, chat, lean: text            ready text   written   difference");
    for (const perWrite of [1, 4, 16]) {
      const ready: number[] = [];
      const written: number[] = [];
      // In turns, so that other work on the machine affects both.
      for (let round = 0; round <= rounds; round++) {
        ready.push(await measure("ready", perWrite));
        written.push(await measure("written", perWrite));
      }
      const [a, b] = [median(ready.slice(1)), median(written.slice(1))];
      const difference = (b - a).toFixed(2);
      console.log(
        `${`  ${perWrite} a write`.padEnd(44)} ${a.toFixed(2).padStart(8)} µs ${b.toFixed(2).padStart(6)} µs ${difference.padStart(9)} µs`,
      );
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
