/** Work of so many steps, each of which takes the event loop for a while; `note` hears of each. */
export function* stepsOfWork(steps: number, ms: number, note: () => void): Generator<undefined, string, undefined> {
  for (let step = 0; step < steps; step++) {
    const end = performance.now() + ms;
    while (performance.now() < end);
    note();
    yield;
  }
  return "done";
}

/** What is noted between two rounds of the event loop, for each round in which something is. */
export async function loopRounds(until: Promise<unknown>, noted: string[]): Promise<string[][]> {
  const seen: string[][] = [];
  const over = new AbortController();
  void until.finally(() => over.abort()).catch(() => {});
  while (!over.signal.aborted) {
    await new Promise((resolve) => setImmediate(resolve));
    if (noted.length > 0) seen.push(noted.splice(0));
  }
  return seen;
}
