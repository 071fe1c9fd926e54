import { onTestFinished } from "vitest";
import { listen, type Listening } from "./listen.ts";

/** Calls `close` when the current test has finished, after what was registered later. Call it inside a test or a function that a test calls. */
export function closeAfterTest(close: () => unknown): void {
  onTestFinished(async () => {
    await close();
  });
}

/** As `listen`, until the current test has finished. */
export async function listenInTest(given: Parameters<typeof listen>[0]): Promise<Listening> {
  const listening = await listen(given);
  closeAfterTest(listening.close);
  return listening;
}
