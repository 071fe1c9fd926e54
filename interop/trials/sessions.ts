import { turnsDone } from "../report.ts";
import { ask, clientApis } from "./client-apis.ts";
import type { Answer, ClientApi, Json, ToolSchema } from "./client-apis.ts";
import type { Place, Trial } from "./trial.ts";

const readFile: ToolSchema = {
  name: "read_file",
  description: "Reads a file of the project and returns its text.",
  schema: {
    type: "object",
    properties: { path: { type: "string", maxLength: 20 } },
    required: ["path"],
    additionalProperties: false,
  },
};

const turns = 4;
const maxTokens = 128;

/**
 * Runs a session: in each of four turns a question, a call that is demanded, its result, and a text. The history is what the client's API
 * gives back. Where the API or the server cannot demand a call, a turn without one counts. The model is asked for its most probable words.
 */
async function session(
  { truewire: url, model, server }: Place,
  api: ClientApi,
  stream: boolean,
): Promise<{ done: number; problem?: string }> {
  const history: Json[] = [];
  const step = async (turn: number, mustCall: boolean): Promise<Answer> => {
    const more = api.id === "ollama" ? { options: { temperature: 0, num_predict: maxTokens } } : { temperature: 0 };
    const answer = await ask(url, api, { model, history, tool: readFile, mustCall, maxTokens, stream, more });
    const what = `turn ${turn}, ${mustCall ? "call" : "text"}`;
    if (answer.status !== 200 || answer.error !== undefined)
      throw new Error(`${what}: ${answer.status} ${answer.error}`);
    if (answer.end === undefined || answer.end === "") throw new Error(`${what}: the answer has no end`);
    history.push(...answer.turn);
    return answer;
  };
  let done = 0;
  try {
    for (let turn = 1; turn <= turns; turn++, done++) {
      history.push(
        api.user(`Read the file notes-${turn}.txt with the tool, then say in three words what it is about.`),
      );
      const { calls, end } = await step(turn, true);
      const canDemand = api.id !== "ollama" && server.demandsNoCalls !== true;
      if (calls.length === 0 && canDemand) throw new Error(`turn ${turn}: no call (${end})`);
      const broken = calls.find(({ input, name }) => input === undefined || name !== readFile.name);
      if (broken && !/length|max_tokens|incomplete/.test(end ?? ""))
        throw new Error(`turn ${turn}: the call is ${JSON.stringify(broken)}`);
      if (broken) throw new Error(`turn ${turn}: the call is cut by the limit of tokens`);
      if (calls.length === 0) continue;
      history.push(...api.results(calls, `Notes ${turn}: the harbour opens at ${turn + 5} o'clock.`));
      await step(turn, false);
    }
    return { done };
  } catch (error) {
    return { done, problem: error instanceof Error ? error.message : String(error) };
  }
}

/** Sessions of four turns with tools, by the API of the client. */
export const sessionTrials: readonly Trial[] = clientApis.map((api) => ({
  name: `session of four turns, ${api.id}`,
  async run(place) {
    const sessions = [await session(place, api, true), await session(place, api, false)];
    const done = sessions.reduce((sum, one) => sum + one.done, 0);
    const problems = sessions.flatMap(({ problem }) => problem ?? []);
    const detail = [turnsDone(done, turns * sessions.length), ...problems].join("; ");
    return { ok: problems.length === 0, detail };
  },
}));
