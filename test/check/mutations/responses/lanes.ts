import {
  judgeLaneId,
  judgeLaneLimit,
  judgeLaneQueue,
  judgeLanes,
  judgeSteer,
} from "../../../../src/judge/check/rules/group/lanes.ts";
import type { GroupVerdict } from "../../../../src/judge/check/rules/group/group-rule.ts";
import { between, seeded } from "../../random.ts";
import type { IllegalChange, LegalChange } from "../mutation.ts";
import type { Json } from "./stream-draft.ts";

type Judged = (random: () => number) => GroupVerdict;

const ids = ["a", "b", undefined] as const;

/** The messages of a response in each of these lanes, in a random order between the lanes. */
function interleaved(lanes: readonly (string | undefined)[], random: () => number): Json[] {
  const queues = lanes.map((lane) => responseIn(lane, between(0, 5, random)));
  const messages: Json[] = [];
  while (queues.some((queue) => queue.length > 0)) {
    const left = queues.filter((queue) => queue.length > 0);
    messages.push(left[between(0, left.length - 1, random)]?.shift() ?? {});
  }
  return messages;
}

function responseIn(lane: string | undefined, deltas: number): Json[] {
  const texts = Array.from({ length: deltas }, () => "response.output_text.delta");
  return ["response.created", "response.in_progress", ...texts, "response.completed"].map((type, number) => ({
    type,
    sequence_number: number,
    ...(lane !== undefined && { stream_id: lane }),
    response: { id: "resp_1" },
  }));
}

function refusal(code: string | null, lane?: string): Json {
  const error = { type: "invalid_request_error", code, message: "No.", param: "stream_id" };
  return { type: "error", status: 400, ...(lane !== undefined && { stream_id: lane }), error };
}

const many = Array.from({ length: 17 }, (_, at) => `s${at}`);
const accepted: Json = { type: "response.steer.accepted", sequence_number: 4, steer: { id: "steer_1" } };
const failed = (code: string): Json => ({ type: "response.steer.failed", error: { code } });
const successor: Json = { type: "response.created", response: { id: "resp_2", previous_response_id: "resp_1" } };
const first: Json = { type: "response.created", response: { id: "resp_1", previous_response_id: null } };
const limit = "websocket_stream_limit_reached";

const wrong: readonly (readonly [rule: string, name: string, judged: Judged])[] = [
  [
    "socket/lanes",
    "an event without its id",
    (random) => {
      const messages = interleaved(ids, random);
      const at = messages.findIndex(({ stream_id: id }) => id === "a");
      const { stream_id: _, ...rest } = messages[at] ?? {};
      return judgeLanes(messages.with(at, rest), ids, false);
    },
  ],
  [
    "socket/lanes",
    "one number for all lanes",
    (random) =>
      judgeLanes(
        interleaved(ids, random).map((message, number) => ({ ...message, sequence_number: number })),
        ids,
        false,
      ),
  ],
  [
    "socket/lanes",
    "a lane that does not end",
    (random) =>
      judgeLanes(
        interleaved(ids, random).filter(({ type, stream_id: id }) => id !== "b" || type !== "response.completed"),
        ids,
        false,
      ),
  ],
  ["socket/lanes", "an id of its own", (random) => judgeLanes(interleaved(["a", "b", "default"], random), ids, false)],
  [
    "socket/lanes",
    "no lanes, where they are demanded",
    (random) => judgeLanes(interleaved([undefined], random), ids, true),
  ],
  ["socket/lanes", "an error, where they are demanded", () => judgeLanes([refusal("response_in_progress")], ids, true)],
  [
    "socket/lane-queue",
    "the 17th is refused",
    (random) => judgeLaneQueue([...interleaved(many.slice(1), random), refusal("too_many", "s0")]),
  ],
  ["socket/lane-queue", "one is lost", (random) => judgeLaneQueue(interleaved(many.slice(1), random))],
  ["socket/lane-limit", "it is answered", (random) => judgeLaneLimit(interleaved(["x"], random), "x")],
  ["socket/lane-limit", "another code", () => judgeLaneLimit([refusal("rate_limit_exceeded", "x")], "x")],
  ["socket/lane-limit", "without the lane", () => judgeLaneLimit([refusal(limit)], "x")],
  ["socket/lane-limit", "no answer", () => judgeLaneLimit([], "x")],
  ["socket/lane-id", "it is answered", (random) => judgeLaneId(interleaved([undefined], random))],
  ["socket/lane-id", "no code", () => judgeLaneId([refusal(null)])],
  ["socket/lane-id", "with the lane", () => judgeLaneId([refusal("invalid_stream_id", "")])],
  ["socket/steer", "an unknown code", () => judgeSteer([first, failed("no")], "resp_1", false)],
  ["socket/steer", "accepted, and forgotten", () => judgeSteer([first, accepted], "resp_1", false)],
  ["socket/steer", "silence, where it is demanded", () => judgeSteer([first], "resp_1", true)],
  ["socket/steer", "an error, where it is demanded", () => judgeSteer([first, refusal("x")], "resp_1", true)],
];

export const laneMutations: readonly IllegalChange[] = wrong.map(([rule, name, judged]) => ({
  rule,
  name,
  make: (seed) => judged(seeded(seed)).findings,
}));

const right: readonly (readonly [name: string, judged: Judged])[] = [
  ["lanes", (random) => judgeLanes(interleaved(ids, random), ids, true)],
  ["no lanes", (random) => judgeLanes(interleaved([undefined], random), ids, false)],
  ["one request at a time", () => judgeLanes([refusal("response_in_progress")], ids, false)],
  ["17 requests", (random) => judgeLaneQueue(interleaved(many, random))],
  ["the 33rd lane", () => judgeLaneLimit([refusal(limit, "x")], "x")],
  ["an empty id", () => judgeLaneId([refusal("invalid_stream_id")])],
  ["a steer", () => judgeSteer([first, accepted, successor], "resp_1", true)],
  ["a steer that waits", () => judgeSteer([first, accepted, { type: "response.steer.pending" }], "resp_1", true)],
  ["a steer that comes too late", () => judgeSteer([first, failed("response_already_completed")], "resp_1", true)],
  ["a server without steering", () => judgeSteer([first, refusal("invalid_value")], "resp_1", false)],
];

export const legalLanes: readonly LegalChange[] = right.map(([name, judged]) => ({
  name: `by WebSocket: ${name}`,
  make: (seed) => judged(seeded(seed)).findings,
}));
