import { readChatStream } from "../../library/read-stream.ts";
import { callApi } from "../api/call-api.ts";
import { announcement, Changing } from "../parts/changing.ts";
import { Answer } from "./answer.ts";
import { requestBody } from "./request-body.ts";
import type { ChatBody } from "./request-body.ts";
import type { Settings } from "./settings.ts";
import { messagesOf } from "./turn.ts";
import type { AnswerTurn, Result, Turn } from "./turn.ts";

/** Maximum time for which reading blocks rendering and input, in milliseconds. */
const pauseAfterMs = 8;

/** Maximum number of answers in a row that are continued with prepared tool results; then the user decides. */
const maxCannedRounds = 8;

/** What was said, and the answer that is being given. */
export class Conversation extends Changing {
  turns: readonly Turn[] = [];
  /** What keeps a question from being asked, in words; "" when nothing does. */
  problem = "";
  readonly #settings: Settings;
  #running: AbortController | undefined;
  #nextId = 1;

  constructor(settings: Settings) {
    super();
    this.#settings = settings;
  }

  get running(): boolean {
    return this.#running !== undefined;
  }

  /** False: the question was not asked, and `problem` says why. */
  ask(text: string, images: readonly string[]): boolean {
    return this.#go([...this.turns, { kind: "question", id: this.#nextId++, text, images }]);
  }

  /** Replaces an earlier question and asks it. Removes everything after it. */
  askInstead(id: number, text: string): boolean {
    const at = this.turns.findIndex((turn) => turn.id === id);
    const turn = this.turns[at];
    if (turn?.kind !== "question") return false;
    return this.#go([...this.turns.slice(0, at), { ...turn, text }]);
  }

  /** Requests an answer again. Removes everything after it. */
  askAgain(id: number): boolean {
    return this.#go(
      this.turns.slice(
        0,
        this.turns.findIndex((turn) => turn.id === id),
      ),
    );
  }

  giveResults(results: readonly Result[]): boolean {
    return this.#go([...this.turns, { kind: "results", id: this.#nextId++, results }]);
  }

  choose(id: number, chosen: number): void {
    this.turns = this.turns.map((turn) => (turn.id === id && turn.kind === "answer" ? { ...turn, chosen } : turn));
    this.changed();
  }

  /** The next question need not wait until the answer has heard of it. */
  stop(): void {
    this.#running?.abort();
    this.#running = undefined;
    this.changed();
  }

  clear(): void {
    this.stop();
    this.turns = [];
    this.problem = "";
    this.changed();
  }

  /** Tells why nothing was asked; `reason` without its full stop. */
  refuse(reason: string): void {
    this.problem = `Not asked yet: ${reason}.`;
    announcement.say(this.problem);
    this.changed();
  }

  /** The calls of the last answer that wait for their results. */
  get open(): AnswerTurn | undefined {
    const last = this.turns.at(-1);
    if (last?.kind !== "answer" || last.answer.state !== "done") return undefined;
    return (last.answer.choices[last.chosen]?.calls.length ?? 0) > 0 ? last : undefined;
  }

  #go(turns: readonly Turn[]): boolean {
    let body: ChatBody;
    try {
      body = requestBody(this.#settings, messagesOf(turns));
    } catch (error) {
      this.refuse(error instanceof Error ? error.message : String(error));
      return false;
    }
    this.stop();
    const answer = new Answer(performance.now());
    const turn: AnswerTurn = { kind: "answer", id: this.#nextId++, body, answer, chosen: 0 };
    this.turns = [...turns, turn];
    this.problem = "";
    this.changed();
    void this.#run(turn);
    return true;
  }

  async #run({ id, body, answer }: AnswerTurn): Promise<void> {
    const controller = new AbortController();
    this.#running = controller;
    announcement.say("Asked. The answer is coming.");
    await read(body, answer, controller.signal);
    // Another question may have taken its place.
    if (this.#running === controller) this.#running = undefined;
    this.changed();
    if (answer.state !== "done") {
      announcement.say(answer.state === "stopped" ? "Stopped." : `Failed: ${answer.failure?.message ?? ""}`);
      return;
    }
    const { open } = this;
    if (open?.id !== id) {
      announcement.say("The answer is complete.");
      return;
    }
    const results = this.#cannedResults(open);
    if (results) this.giveResults(results);
    else announcement.say("The model calls a tool and waits for its result.");
  }

  /** The results of all calls of an answer, where each tool has a canned one and they do not go in circles. */
  #cannedResults({ answer, chosen }: AnswerTurn): Result[] | undefined {
    const lastQuestion = this.turns.findLastIndex(({ kind }) => kind === "question");
    const rounds = this.turns.slice(lastQuestion).filter(({ kind }) => kind === "results").length;
    if (rounds >= maxCannedRounds) return undefined;
    const results: Result[] = [];
    for (const { id: callId, name } of answer.choices[chosen]?.calls ?? []) {
      const tool = this.#settings.tools.find((tool) => tool.name === name);
      if (!tool || tool.canned === "") return undefined;
      results.push({ callId, name, text: tool.canned });
    }
    return results;
  }
}

/** What the server says of its cache, in words; undefined: nothing that the reader of one answer needs to know. */
function missOf(header: string | null): string | undefined {
  if (header === null) return undefined;
  const { cause, says } = JSON.parse(header) as { readonly cause?: unknown; readonly says?: unknown };
  return cause !== "nothing-known" && typeof says === "string" ? says : undefined;
}

async function read(body: ChatBody, answer: Answer, signal: AbortSignal): Promise<void> {
  try {
    const response = await callApi("chat/completions", {
      method: "POST",
      headers: { "content-type": "application/json", "x-truewire-cache": "explain" },
      body: JSON.stringify(body),
      signal,
    });
    answer.status = response.status;
    answer.retryAfterSeconds = Number(response.headers.get("retry-after") ?? Number.NaN);
    answer.requestId = response.headers.get("x-request-id");
    answer.cacheMiss = missOf(response.headers.get("x-truewire-cache-miss"));
    let paused = performance.now();
    for await (const event of readChatStream(response)) {
      const now = performance.now();
      if (signal.aborted) break;
      answer.take(event, now);
      if (now - paused < pauseAfterMs) continue;
      await new Promise((resolve) => setTimeout(resolve));
      paused = performance.now();
    }
    if (signal.aborted) answer.stop();
  } catch {
    if (signal.aborted) answer.stop();
    else answer.fail({ message: "The server cannot be reached." });
  }
}
