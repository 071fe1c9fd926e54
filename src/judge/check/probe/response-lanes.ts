import { isObject } from "../../../wire/core/json.ts";
import { type GroupVerdict, notShown } from "../rules/group/group-rule.ts";
import {
  hasLanes,
  isEndMessage,
  judgeLaneId,
  judgeLaneLimit,
  judgeLaneQueue,
  judgeLanes,
  judgeSteer,
} from "../rules/group/lanes.ts";
import type { Json } from "../rules/view.ts";
import { create, story } from "./response-request.ts";
import type { Scenario, ScenarioSteps } from "./scenario.ts";
import { exchangeOf, SocketLine, transcribed } from "./socket-line.ts";

/** Responses by WebSocket, several at the same time on one connection, and one that is steered, where that is offered. */
export const responseLanes: Scenario = {
  id: "responses/lanes",
  about: "Responses: lanes and steering by WebSocket",
  api: "responses",
  async run(steps) {
    const verdicts: GroupVerdict[] = [];
    for (const part of [lanes, steering]) {
      const line = await SocketLine.open(steps.target);
      if (!(line instanceof SocketLine)) return [notShown(`no WebSocket is offered (${line.refused})`)];
      try {
        verdicts.push(...(await part(line, steps)));
      } finally {
        line.close();
      }
    }
    return verdicts;
  },
};

const maxRunning = 16;
const maxLanes = 32;

async function lanes(line: SocketLine, steps: ScenarioSteps): Promise<readonly GroupVerdict[]> {
  const isDemanded = steps.profile === "exact";
  const ids = ["lane-1", "lane-2", undefined];
  const probe = create("lanes/first", "a lane of a WebSocket", { input: story, store: false, stream_id: ids[0] });
  const begun = performance.now();
  const asked = ids.map((lane) => request(steps, { input: story, ...(lane !== undefined && { stream_id: lane }) }));
  const texts = await line.converse(asked, (messages) => messages.filter(isEndMessage).length === ids.length);
  const messages = texts.map(messageIn);
  const verdict = judgeLanes(messages, ids, isDemanded);
  if (!hasLanes(messages)) return [verdict];
  const first = texts.filter((_, at) => messages[at]?.stream_id === ids[0]);
  const exchange = exchangeOf(
    asked[0] ?? {},
    first.map((text) => transcribed(text, false)),
    messages.some((message) => message.stream_id === ids[0] && isEndMessage(message)),
  );
  steps.note({ probe, exchange, milliseconds: performance.now() - begun });
  const many = Array.from({ length: maxRunning + 1 }, (_, at) =>
    request(steps, { input: "Say hello.", stream_id: `lane-${at + 1}`, max_output_tokens: 16 }),
  );
  const queued = await line.converse(many, (got) => got.filter(isEndMessage).length >= many.length);
  // These generate nothing.
  const others = Array.from({ length: maxLanes - maxRunning - 1 }, (_, at) =>
    request(steps, { input: "Say hello.", stream_id: `lane-${at + maxRunning + 2}`, generate: false }),
  );
  await line.converse(others, (got) => got.filter(isEndMessage).length >= others.length);
  const over = `lane-${maxLanes + 1}`;
  const refused = async (members: Json): Promise<readonly Json[]> =>
    (await line.converse([request(steps, { input: "Hi", ...members })], (got) => got.some(isEndMessage))).map(
      messageIn,
    );
  return [
    verdict,
    judgeLaneQueue(queued.map(messageIn)),
    judgeLaneLimit(await refused({ stream_id: over }), over),
    judgeLaneId(await refused({ stream_id: "" })),
  ];
}

async function steering(line: SocketLine, steps: ScenarioSteps): Promise<readonly GroupVerdict[]> {
  let id: unknown;
  let hasAskedAgain = false;
  const texts = await line.converse([request(steps, { input: story, max_output_tokens: 64 })], (messages, send) => {
    const last = messages.at(-1);
    if (id === undefined && last?.type === "response.created" && isObject(last.response)) {
      id = last.response["id"];
      send({ type: "response.steer", previous_response_id: id, input: "Say goodbye instead." });
    }
    const count = messages.filter(isEndMessage).length;
    if (messages.some(({ type }) => type === "response.steer.failed" || type === "response.steer.pending"))
      return count > 0;
    // An accepted steer makes a second response. A server that has answered the next request will not answer the steer any more.
    if (count === 1 && !hasAskedAgain && !messages.some(({ type }) => type === "response.steer.accepted")) {
      hasAskedAgain = true;
      send(request(steps, { input: "Hi", generate: false }));
    }
    return count > 1;
  });
  return [judgeSteer(texts.map(messageIn), id, steps.profile === "exact")];
}

function request({ target }: ScenarioSteps, members: Json): Json {
  const body = create("lanes/request", "", { store: false, ...members }).body?.(target.model) ?? {};
  return { type: "response.create", ...target.refused.adapted("responses", body) };
}

function messageIn(text: string): Json {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}
