import { readChatStream } from "../../judge/library/read-stream.ts";
import { callApi } from "../api/call-api.ts";
import { announcement, Changing } from "../parts/changing.ts";
import { Answer } from "./answer.ts";
import { requestBody } from "./request-body.ts";
import type { ChatBody } from "./request-body.ts";
import type { Settings } from "./settings.ts";
import type { ConversationRecord } from "./conversation-store.ts";
import { TurnTree } from "./turn-tree.ts";
import { bodyOf, continuationOf, messagesOf, newId, placeAfter, titleOf } from "./turn.ts";
import type { AnswerTurn, AttachedFile, Result, Turn } from "./turn.ts";

/** Maximum time for which reading blocks rendering and input, in milliseconds. */
const pauseAfterMs = 8;

/** Maximum number of answers in a row that are continued with prepared tool results; then the user decides. */
const maxCannedRounds = 8;

/** Shortest time between two writes of a growing answer, in milliseconds. */
const keepAfterMs = 1000;

/** What a conversation reports its changes to. */
export interface Keeper {
  /** Turns with these ids were added, changed or removed; without ids, only the title or what is shown has changed. */
  keep(conversation: Conversation, ids: readonly string[]): void;
  /** The user has removed a version of a turn and what followed it; `conversation.restore` undoes that. */
  removed(conversation: Conversation, turns: readonly Turn[]): void;
}

/** A conversation of the user with a model: all turns with their versions, and the answer that is being received. */
export class Conversation extends Changing {
  readonly id: string;
  /** "" before the first question. */
  title: string;
  /** Milliseconds since 1970. */
  readonly created: number;
  /** When the last question was asked, or its answer ended, in milliseconds since 1970. */
  changedAt: number;
  readonly tree: TurnTree = new TurnTree();
  /** Why the question was not asked, as a sentence; "" if it was. */
  problem = "";
  /** The text in the composer that was not sent yet. */
  draft = "";
  /** How many answers were requested in this tab. */
  requests = 0;
  /** Another conversation is shown: announcements name this one. */
  inBackground = false;
  readonly #settings: Settings;
  readonly #keeper: Keeper | undefined;
  #running: { readonly controller: AbortController; readonly turn: AnswerTurn } | undefined;

  /** `keeper`: absent if the conversation is not kept. */
  constructor(
    settings: Settings,
    { id = newId(), title = "", created = Date.now(), changed = created }: Partial<ConversationRecord> = {},
    keeper?: Keeper,
  ) {
    super();
    this.#settings = settings;
    this.id = id;
    this.title = title;
    this.created = created;
    this.changedAt = changed;
    this.#keeper = keeper;
  }

  /** The turns that are shown. */
  get turns(): readonly Turn[] {
    return this.tree.path;
  }

  /** Its answer is being received. Not for the moment between the answer's end and that of its connection: the next question can be asked. */
  get running(): boolean {
    return this.#running?.turn.answer.state === "running";
  }

  /** Versions can be paged to, deleted and restored. Without a keeper, deleting one could not be undone. */
  get isKept(): boolean {
    return this.#keeper !== undefined;
  }

  /** The id of the answer that this tab receives. */
  get runningTurn(): string | undefined {
    return this.#running?.turn.id;
  }

  get record(): ConversationRecord {
    const { id, title, created, changedAt, tree } = this;
    return { id, title, created, changed: changedAt, shown: tree.shown };
  }

  /** Returns false if the question was not asked; `problem` is the reason. */
  ask(text: string, images: readonly string[], files: readonly AttachedFile[] = []): boolean {
    const placed = this.#placed(this.tree.end);
    const added: Turn = { kind: "question", ...placed, text, images, ...(files.length > 0 && { files }) };
    return this.#request([...this.turns, added], added);
  }

  /** Adds another version of an earlier question, and asks it. */
  askInstead(id: string, text: string): boolean {
    const turn = this.tree.get(id);
    if (turn?.kind !== "question") return false;
    const added: Turn = { ...turn, ...this.#placed(turn.parent), text };
    return this.#request([...this.tree.pathTo(id).slice(0, -1), added], added);
  }

  /** Requests another version of an answer. */
  askAgain(id: string): boolean {
    return this.#request(this.tree.pathTo(id).slice(0, -1));
  }

  /** Continues an answer that broke off: resumes its stream where the server still has it, else asks the model to continue. */
  goOn(id: string): void {
    const turn = this.tree.get(id);
    if (turn?.kind !== "answer") return;
    this.stop();
    const { answer } = turn;
    const { requestId, state } = answer;
    const body = continuationOf(turn, this.tree.pathTo(id).slice(0, -1));
    const send = async (signal: AbortSignal): Promise<Response> => {
      if (requestId !== null && state !== "stopped") {
        const resumed = await callApi(`streams/${encodeURIComponent(requestId)}`, { signal });
        if (resumed.ok) {
          answer.goOn("start");
          return resumed;
        }
      }
      if (!body)
        throw new LostAnswer(
          "The server no longer has the rest of this answer, and it cannot be continued. Ask again.",
        );
      answer.goOn("text");
      return sendChat(body, signal);
    };
    answer.state = "running";
    answer.failure = undefined;
    answer.changed();
    this.problem = "";
    this.#begin(turn, send);
    this.#changed([id]);
  }

  /** Returns the results of the calls of an answer to the model; without an id, of the last answer that is shown. */
  giveResults(results: readonly Result[], id = this.turns.at(-1)?.id ?? ""): boolean {
    const before = this.tree.pathTo(id);
    const last = before.at(-1);
    const added: Turn = { kind: "results", ...this.#placed(last ? placeAfter(last) : ""), results };
    return this.#request([...before, added], added);
  }

  /** Continues from another choice of an answer. */
  choose(id: string, chosen: number): void {
    this.tree.choose(id, chosen);
    this.#changed([id]);
  }

  /** Shows a version of a turn. */
  show(id: string): void {
    this.tree.show(id);
    this.#changed([]);
  }

  /** Removes a version of a turn, and all that follows it. */
  remove(id: string): void {
    const removed = this.tree.remove(id);
    if (removed.some(({ id }) => id === this.runningTurn)) this.stop();
    this.#changed(removed.map(({ id }) => id));
    this.#keeper?.removed(this, removed);
  }

  restore(removed: readonly Turn[]): void {
    this.tree.addAll(removed);
    const [first] = removed;
    if (first) this.tree.show(first.id);
    this.#changed(removed.map(({ id }) => id));
  }

  /** Returns the request of an answer. */
  bodyOf(turn: AnswerTurn): ChatBody {
    return bodyOf(turn, this.tree.pathTo(turn.id).slice(0, -1));
  }

  /** Takes over what another tab has stored: turns that were added or changed, and the ids of those that were removed. */
  merge(turns: readonly Turn[], removed: readonly string[]): void {
    this.tree.addAll(turns.filter(({ id }) => id !== this.runningTurn));
    for (const id of removed) if (id !== this.runningTurn) this.tree.remove(id);
    // It followed one of those.
    if (this.runningTurn !== undefined && !this.tree.get(this.runningTurn)) this.stop();
    this.changed();
  }

  /** The next question need not wait until the connection is closed. */
  stop(): void {
    const running = this.#running;
    if (!running) return;
    this.#running = undefined;
    running.controller.abort();
    const { answer } = running.turn;
    if (answer.state === "running") {
      // A stream that can be resumed continues when its connection is closed.
      if (answer.resumable && answer.requestId !== null)
        void callApi(`streams/${encodeURIComponent(answer.requestId)}`, { method: "DELETE", keepalive: true }).catch(
          () => {},
        );
      answer.stop();
    }
    this.#changed([running.turn.id]);
  }

  /** Shows why nothing was asked; `reason` without its full stop. */
  refuse(reason: string): void {
    this.problem = `Not asked yet: ${reason}.`;
    announcement.say(this.problem);
    this.changed();
  }

  /** The last answer that is shown, if its calls wait for their results. */
  get open(): AnswerTurn | undefined {
    const last = this.turns.at(-1);
    return last?.kind === "answer" && waits(last) ? last : undefined;
  }

  /** Where a new turn is added. */
  #placed(parent: string): Pick<Turn, "id" | "parent" | "created"> {
    return { id: newId(), parent, created: Date.now() };
  }

  #changed(ids: readonly string[]): void {
    this.#keeper?.keep(this, ids);
    this.changed();
  }

  /** `before`: all turns before the answer. `added`: the last of them, if it is new. */
  #request(before: readonly Turn[], added?: Turn): boolean {
    let body: ChatBody;
    try {
      body = requestBody(this.#settings, messagesOf(before));
    } catch (error) {
      this.refuse(error instanceof Error ? error.message : String(error));
      return false;
    }
    this.stop();
    const { messages: _, ...request } = body;
    const last = before.at(-1);
    const turn: AnswerTurn = {
      kind: "answer",
      ...this.#placed(last ? placeAfter(last) : ""),
      request,
      system: this.#settings.system,
      answer: new Answer(performance.now()),
      chosen: 0,
    };
    if (added) this.tree.put(added);
    this.tree.put(turn);
    this.tree.show(turn.id);
    if (this.title === "" && added?.kind === "question") this.title = titleOf(added);
    this.problem = "";
    this.requests++;
    this.changedAt = Date.now();
    this.#begin(turn, (signal) => sendChat(body, signal));
    this.#changed(added ? [added.id, turn.id] : [turn.id]);
    return true;
  }

  #begin(turn: AnswerTurn, send: Send): void {
    const controller = new AbortController();
    this.#running = { controller, turn };
    void this.#receive(turn, send, controller);
  }

  async #receive({ id, answer }: AnswerTurn, send: Send, controller: AbortController): Promise<void> {
    this.#announce("Asked. The answer is coming.");
    const begun = performance.now();
    let timer: ReturnType<typeof setTimeout> | undefined;
    // Intervals grow with the answer, so that all writes together are proportional to its length.
    const keepLater = (): void => {
      timer = setTimeout(
        () => {
          this.#keeper?.keep(this, [id]);
          keepLater();
        },
        Math.max(keepAfterMs, (performance.now() - begun) / 20),
      );
    };
    keepLater();
    await read(send, answer, controller.signal);
    clearTimeout(timer);
    // Another question may have taken its place.
    if (this.#running?.controller === controller) this.#running = undefined;
    this.changedAt = Date.now();
    this.#changed([id]);
    if (answer.state !== "done") {
      this.#announce(answer.state === "stopped" ? "Stopped." : `Failed: ${answer.failure?.message ?? ""}`);
      return;
    }
    const turn = this.tree.get(id);
    if (turn?.kind !== "answer" || !waits(turn)) {
      this.#announce("The answer is complete.");
      return;
    }
    const results = this.#cannedResults(turn);
    if (results) this.giveResults(results, id);
    else this.#announce("The model calls a tool and waits for its result.");
  }

  #announce(text: string): void {
    announcement.say(this.inBackground ? `In “${this.title}”: ${text}` : text);
  }

  /** Returns the results of all calls of an answer if each tool has a canned one and they do not go in circles. */
  #cannedResults({ id, answer, chosen }: AnswerTurn): Result[] | undefined {
    const turns = this.tree.pathTo(id);
    const lastQuestion = turns.findLastIndex(({ kind }) => kind === "question");
    const rounds = turns.slice(lastQuestion).filter(({ kind }) => kind === "results").length;
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

/** A complete answer with calls. */
function waits({ answer, chosen }: AnswerTurn): boolean {
  return answer.state === "done" && (answer.choices[chosen]?.calls.length ?? 0) > 0;
}

/** What the server says of its cache, in words; undefined: nothing that the reader of one answer needs to know. */
function missOf(header: string | null): string | undefined {
  if (header === null) return undefined;
  const { cause, says } = JSON.parse(header) as { readonly cause?: unknown; readonly says?: unknown };
  return cause !== "nothing-known" && typeof says === "string" ? says : undefined;
}

/** How long an answer continues without its page: a reload takes seconds. */
const resumeTime = "30s";

/** Sends a request whose answer is received. */
type Send = (signal: AbortSignal) => Promise<Response>;

/** An answer that broke off and cannot go on. */
class LostAnswer extends Error {}

function sendChat(body: ChatBody, signal: AbortSignal): Promise<Response> {
  const headers = {
    "content-type": "application/json",
    "x-truewire-cache": "explain",
    "x-truewire-resume": resumeTime,
  };
  return callApi("chat/completions", { method: "POST", headers, body: JSON.stringify(body), signal });
}

async function read(send: Send, answer: Answer, signal: AbortSignal): Promise<void> {
  try {
    const response = await send(signal);
    answer.status = response.status;
    answer.resumable = response.headers.has("x-truewire-resume");
    answer.retryAfterSeconds = Number(response.headers.get("retry-after") ?? Number.NaN);
    // A stream that is resumed keeps the id of the request that began it.
    if (!/\/streams\//.test(response.url)) answer.requestId = response.headers.get("x-request-id");
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
  } catch (error) {
    if (signal.aborted) answer.stop();
    else if (error instanceof LostAnswer) answer.fail({ message: error.message });
    else answer.fail({ message: "The server cannot be reached." });
  }
}
