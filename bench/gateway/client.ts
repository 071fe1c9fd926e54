// The clients of the gateway bench, a process of its own. Reads one JSON job a line from stdin, and answers with one JSON line.
import { Agent, request } from "node:http";
import { createInterface } from "node:readline";

export interface Job {
  readonly url: string;
  readonly model: string;
  readonly stream: boolean;
  readonly key?: string;
  /** More headers of each request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** How many requests are open at once. */
  readonly concurrency: number;
  /** How many requests are made in all. */
  readonly total: number;
  /** The local address to connect from: each has about 28,000 ports. */
  readonly localAddress?: string;
}

export interface Outcome {
  readonly seconds: number;
  /** Complete answers: status 200, and a stream ends with `[DONE]`. */
  readonly answers: number;
  readonly failures: number;
  readonly events: number;
  /** Milliseconds from sending to the first byte of the body, sorted. */
  readonly firstByteMs: readonly number[];
}

const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });

async function run(job: Job): Promise<Outcome> {
  const firstByteMs: number[] = [];
  let events = 0;
  let failures = 0;
  let left = job.total;
  const started = performance.now();
  const worker = async (): Promise<void> => {
    while (left-- > 0) {
      const answer = await ask(job);
      if (answer === null) failures++;
      else {
        events += answer.events;
        firstByteMs.push(answer.firstByteMs);
      }
    }
  };
  await Promise.all(Array.from({ length: job.concurrency }, worker));
  const seconds = (performance.now() - started) / 1000;
  return { seconds, answers: firstByteMs.length, failures, events, firstByteMs: firstByteMs.sort((a, b) => a - b) };
}

/** How every whole stream ends. */
const done = Buffer.from("data: [DONE]\n\n");

function ask({
  url,
  model,
  stream,
  key,
  headers: more,
  localAddress,
}: Job): Promise<{ events: number; firstByteMs: number } | null> {
  const body = JSON.stringify({ model, stream, messages: [{ role: "user", content: "Hi" }] });
  return new Promise((resolve) => {
    const sent = performance.now();
    let firstByteMs = -1;
    let events = 0;
    let last = 0;
    let tail: Buffer = Buffer.alloc(0);
    const headers = {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
      ...more,
    };
    const from = localAddress === undefined ? {} : { localAddress };
    const out = request(`${url}/chat/completions`, { agent, method: "POST", headers, ...from }, (answer) => {
      answer.on("data", (chunk: Buffer) => {
        if (firstByteMs < 0) firstByteMs = performance.now() - sent;
        if (!stream) return;
        // An event ends in two line feeds, and holds none.
        for (const byte of chunk) {
          if (byte === 10 && last === 10) events++;
          last = byte;
        }
        tail = chunk.length >= done.length ? chunk : Buffer.concat([tail, chunk]);
        tail = tail.subarray(-done.length);
      });
      answer.on("end", () => {
        const whole = answer.statusCode === 200 && (!stream || tail.equals(done));
        resolve(whole ? { events, firstByteMs } : null);
      });
      answer.on("error", () => resolve(null));
    });
    out.on("error", () => resolve(null));
    // The connection closed before the end of the answer, without an error.
    out.on("close", () => resolve(null));
    out.end(body);
  });
}

if (process.argv[1]?.endsWith("client.js")) {
  for await (const line of createInterface({ input: process.stdin })) {
    console.log(JSON.stringify(await run(JSON.parse(line) as Job)));
  }
}
