import { callsOf, finalText, runTool, sameCall } from "../../doubles/task.ts";
import type { TaskCall } from "../../doubles/task.ts";
import type { Json } from "../../doubles/chat-server.ts";

/** One session of a client, which keeps its own history. */
export interface ClientSession {
  /**
   * Sends the text, runs the tools until the model answers with text alone, and returns it. Rejects with what the server refused. `url`: of
   * another instance of Truewire; only clients without a library take it.
   */
  turn(model: string, text: string, url?: string): Promise<TurnResult>;
  /** Called before each request. Only clients without a library call it. */
  before?: (next: NextRequest) => Promise<void> | void;
}

/** A request that a client is about to send. */
export interface NextRequest {
  /** What the client has kept, which may be changed: messages or items. */
  readonly history: Json[];
  /** Of the turn, from 0. */
  readonly step: number;
  /** The arguments of `post`. */
  request(): readonly [url: string, body: Json, headers: Record<string, string>];
}

export interface TurnResult {
  readonly text: string;
  /** The calls that the client ran, in order. */
  readonly calls: readonly TaskCall[];
}

export interface SessionClient {
  readonly name: string;
  /** `url`: of Truewire, without `/v1`. `key`: of the client; default: none. */
  open(url: string, key?: string): ClientSession;
}

/** What a client returns of an answer: all of it, what its API's documentation shows, or only texts and calls. */
export type Returns = "everything" | "half" | "nothing";

/** The error of a client that was refused. */
export class Refused extends Error {}

/** No turn has more steps. */
export const maxSteps = 8;

/** Why a turn is not what the task says; undefined: it is. */
export function problemOf(session: string, turn: number, { text, calls }: TurnResult): string | undefined {
  const wanted = callsOf(session, turn);
  if (calls.length !== wanted.length || calls.some((call, at) => !wanted[at] || !sameCall(call, wanted[at])))
    return `lost calls: ran ${JSON.stringify(calls)}`;
  // A client of a streamed answer may have the texts of all steps.
  return text.endsWith(finalText(turn)) ? undefined : `the text is ${JSON.stringify(text)}`;
}

/** Runs a call whose arguments are JSON. */
export function run(name: string, text: unknown): { call: TaskCall; text: string; isError: boolean } {
  const input = (typeof text === "string" ? JSON.parse(text || "{}") : text) as Json;
  const call = { name, input };
  return { call, ...runTool(call) };
}

export async function post(
  url: string,
  body: unknown,
  headers: Record<string, string>,
  signal?: AbortSignal,
): Promise<Response> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
    ...(signal && { signal }),
  });
  if (response.status !== 200) throw new Refused(`${response.status} ${await response.text()}`);
  return response;
}

/** The JSON of each `data:` line. */
export async function dataOf(response: Response): Promise<Record<string, unknown>[]> {
  return (await response.text())
    .split("\n")
    .flatMap((line) => (line.startsWith("data: {") ? [JSON.parse(line.slice(6)) as Record<string, unknown>] : []));
}

export function bearer(key: string | undefined): Record<string, string> {
  return key === undefined ? {} : { authorization: `Bearer ${key}` };
}
