import { expect, test } from "vitest";
import { peerPair } from "../../test/support/peer-pair.ts";
import type { PeerPair } from "../../test/support/peer-pair.ts";
import type { Metrics } from "../server/service.ts";
import { NumbersOfWorkers, shareNumbers } from "./shared-numbers.ts";

/** A worker that has counted so many requests; undefined: it does not say. */
function join(
  together: NumbersOfWorkers,
  name: string,
  count: () => number | undefined,
): { metrics: Metrics; pair: PeerPair } {
  const pair = peerPair();
  together.join(pair.primary, name);
  const text = async (): Promise<string> => {
    const counted = count();
    if (counted === undefined) await new Promise(() => {});
    return `# HELP asked_total T.\n# TYPE asked_total counter\nasked_total{model="m"} ${counted}\n# HELP open O.\n# TYPE open gauge\nopen 1\n`;
  };
  const own: Metrics = { observe() {}, contentType: "text/plain", text, close() {} };
  return { metrics: shareNumbers(pair.worker, name, own, text), pair };
}

const samplesOf = async ({ metrics }: { metrics: Metrics }): Promise<string[]> =>
  (await metrics.text([], 0)).split("\n").filter((line) => line !== "" && !line.startsWith("#"));

test("any worker reports the metrics of all processes; a counter never decreases if a worker dies or is late", async () => {
  const ofPrimary =
    "# HELP process_cpu_seconds_total C.\n# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total 7\n";
  const together = new NumbersOfWorkers(async () => ofPrimary);
  let isLate = false;
  const first = join(together, "1", () => 10);
  const second = join(together, "2", () => (isLate ? undefined : 5));
  const samples = ['asked_total{model="m"} 15', "open 2", 'process_cpu_seconds_total{worker="primary"} 7'];
  expect(await samplesOf(first)).toEqual([
    ...samples,
    'truewire_worker_up{worker="1"} 1',
    'truewire_worker_up{worker="2"} 1',
  ]);
  expect(await samplesOf(second)).toEqual([
    ...samples,
    'truewire_worker_up{worker="2"} 1',
    'truewire_worker_up{worker="1"} 1',
  ]);

  isLate = true;
  const late = await samplesOf(first);
  expect(late).toEqual([
    samples[0],
    "open 1",
    samples[2],
    'truewire_worker_up{worker="1"} 1',
    'truewire_worker_up{worker="2"} 0',
  ]);

  second.pair.end();
  const third = join(together, "3", () => 1);
  expect((await samplesOf(third))[0]).toBe('asked_total{model="m"} 16');
  third.pair.end();
  expect((await samplesOf(first))[0]).toBe('asked_total{model="m"} 16');
});

test("without the primary process, a worker reports its own metrics", async () => {
  const { metrics, pair } = join(new NumbersOfWorkers(async () => ""), "1", () => 3);
  pair.end();
  expect(await samplesOf({ metrics })).toEqual([
    'asked_total{model="m"} 3',
    "open 1",
    'truewire_worker_up{worker="1"} 1',
  ]);
});
