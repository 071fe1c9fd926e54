import { problemOf } from "./clients/client.ts";
import type { SessionClient } from "./clients/client.ts";
import { userText } from "../doubles/task.ts";

/** What came of a session. */
export interface Outcome {
  /** Its name, by which doubles know its prompts. */
  readonly session?: string;
  readonly turnsDone: number;
  readonly turnsTried: number;
  /** Why the first turn that was not done was not. */
  readonly problem?: string;
}

let sessions = 0;

/** Runs a session: one turn with each of the models. It ends at the first turn that fails, as an agent does. */
export async function runSession(
  client: SessionClient,
  url: string,
  models: readonly string[],
  turns: readonly number[] = models.map((_, at) => at + 1),
): Promise<Outcome> {
  const name = `s${++sessions}`;
  const session = client.open(url);
  for (const [at, model] of models.entries()) {
    const turn = turns[at] ?? at + 1;
    const result = await session.turn(model, userText(name, turn)).catch((error: unknown) => String(error));
    const problem = typeof result === "string" ? result : problemOf(name, turn, result);
    if (problem !== undefined) return { session: name, turnsDone: at, turnsTried: models.length, problem };
  }
  return { session: name, turnsDone: models.length, turnsTried: models.length };
}
