import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { availableParallelism, loadavg } from "node:os";
import OpenAI from "openai";
import { startTruewire } from "../test/support/serve.ts";

/**
 * How soon `truewire serve` without arguments is ready, and how fast the bundled model then generates on one thread: milliseconds from the
 * start of the process to the line with its address, and tokens/s of one streamed answer and of four concurrent ones (medians of several
 * rounds). Targets: ready within about 2 s, at least 100 tokens/s.
 *
 *     npm run build && npm run bench demo -- [--rounds 5] [--tokens 256]
 */
const { values } = parseArgs({
  options: { rounds: { type: "string", default: "5" }, tokens: { type: "string", default: "256" } },
});
const rounds = Number(values.rounds);
const tokens = Number(values.tokens);
const median = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;

/** Tokens per second of this many concurrent answers. `ignore_eos` makes all of them equally long. */
async function rate(client: OpenAI, streams: number): Promise<number> {
  const started = performance.now();
  const counts = await Promise.all(
    Array.from({ length: streams }, async () => {
      const request = {
        model: "demo",
        messages: [{ role: "user" as const, content: "Count from 1 to 20" }],
        max_tokens: tokens,
        temperature: 0,
        stream: true as const,
        stream_options: { include_usage: true },
        ignore_eos: true,
      };
      let count = 0;
      for await (const chunk of await client.chat.completions.create(request))
        count = chunk.usage?.completion_tokens ?? count;
      return count;
    }),
  );
  return (counts.reduce((a, b) => a + b, 0) * 1000) / (performance.now() - started);
}

const ready: number[] = [];
const rates = new Map<number, number[]>([
  [1, []],
  [4, []],
]);
for (let round = 0; round < rounds; round++) {
  const started = performance.now();
  const server = await startTruewire(["--threads", "1", "--log-level", "silent"], {
    main: resolve("dist/cli/main.js"),
  });
  ready.push(performance.now() - started);
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none" });
  await rate(client, 1);
  for (const [streams, found] of rates) found.push(await rate(client, streams));
  await server.stop();
}
console.log(`${availableParallelism()} cores, load ${loadavg()[0]?.toFixed(1)}, Node ${process.version}`);
console.log(`ready after ${median(ready).toFixed(0)} ms (median of ${rounds}; target about 2,000)`);
for (const [streams, found] of rates)
  console.log(
    `${streams} at a time: ${median(found).toFixed(0)} tokens/s in all${streams === 1 ? " (target 100)" : ""}`,
  );
