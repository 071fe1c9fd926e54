import { setTimeout as sleep } from "node:timers/promises";
import type { Exchange } from "../rules/exchange.ts";
import { notShown } from "../rules/group/group-rule.ts";
import { isRunning, judgeBackground } from "../rules/group/stored.ts";
import { lastResponse } from "../rules/responses/response-content.ts";
import { create, idOf, onStored, story } from "./response-request.ts";
import type { Scenario, ScenarioSteps } from "./scenario.ts";

/** How long it waits between two questions, in milliseconds. */
const pause = 250;

/** A response in the background, asked for until it has ended. */
export const backgroundResponse: Scenario = {
  id: "responses/background",
  about: "Responses: a response in the background",
  api: "responses",
  async run(steps) {
    const begun = await steps.ask(
      create("background/create", "a response in the background", { input: story, background: true }),
    );
    return [begun ? judgeBackground(begun, await polled(steps, begun)) : notShown("no answer")];
  },
};

async function polled(steps: ScenarioSteps, begun: Exchange): Promise<readonly Exchange[]> {
  const id = idOf(begun);
  if (id === undefined || !isRunning(lastResponse(begun)?.status)) return [];
  const shown: Exchange[] = [];
  const deadline = performance.now() + steps.target.timeout;
  while (performance.now() < deadline) {
    const found = await steps.ask(onStored("GET", "responses", "background/get", "it is shown as it is then", id));
    if (!found) break;
    shown.push(found);
    if (found.response.status !== 200 || !isRunning(lastResponse(found)?.status)) break;
    await sleep(pause, undefined, steps.signal && { signal: steps.signal });
  }
  return shown;
}
