import { announcement, Changing } from "../parts/changing.ts";
import type { Answer } from "./answer.ts";
import { ComparisonStore, keepTabComparison, tabComparison } from "./comparison-store.ts";
import { Conversation } from "./conversation.ts";
import type { Keeper } from "./conversation.ts";
import type { ConversationRecord } from "./conversation-store.ts";
import { readSettings, settingsText } from "./presets.ts";
import { requestBody } from "./request-body.ts";
import type { KnownDefault } from "../api/models.ts";
import { Settings, type SettingsValues } from "./settings.ts";
import { readTurns } from "./stored-turn.ts";
import { newId } from "./turn.ts";
import type { AnswerTurn, AttachedFile, QuestionTurn, Turn } from "./turn.ts";
import { countInWords } from "../parts/count-in-words.ts";

/** One column: a conversation with settings of its own. */
interface Side {
  readonly name: "A" | "B";
  readonly settings: Settings;
  conversation: ComparedConversation;
}

/** Two conversations with the same questions, each with its own model and settings. */
export class Comparison extends Changing {
  readonly sides: readonly [Side, Side];
  /** The text in the composer that was not sent yet. */
  draft = "";
  /** The composer offers to clear a conversation with turns; a comparison has a button of its own. */
  readonly turns: readonly Turn[] = [];
  #wasRunning = false;
  #problem = "";
  #id = newId();
  /** It is what Play shows. */
  #isShown = false;
  #followsSettings = false;
  readonly #store = new ComparisonStore();

  /** Both sides begin with a copy of the settings; B with the next model, if the server has another one. */
  constructor(settings: Settings, models: readonly string[]) {
    super();
    const side = (name: Side["name"], model: string): Side => {
      const own = new Settings();
      own.set({ ...settings.values, model, wantsTimings: true, table: settings.table });
      return { name, settings: own, conversation: this.#newConversation(name, own) };
    };
    const next = models[(models.indexOf(settings.model) + 1) % Math.max(1, models.length)];
    this.sides = [side("A", settings.model), side("B", next ?? settings.model)];
    this.#follow();
  }

  /** Returns the comparison that this tab had before it was reloaded; undefined: it had no comparison. */
  static async restored(settings: Settings, models: readonly string[]): Promise<Comparison | undefined> {
    const kept = tabComparison();
    if (!kept) return undefined;
    const comparison = new Comparison(settings, models);
    comparison.#id = kept.id;
    comparison.#isShown = kept.shown;
    for (const [at, side] of comparison.sides.entries()) {
      try {
        side.settings.set(readSettings(kept.settings[at] ?? ""));
      } catch {
        // Another version of the page wrote it: this side begins with the current settings.
      }
      const stored = await comparison.#store.load(comparison.#idOf(side.name));
      side.conversation = comparison.#newConversation(side.name, side.settings, stored?.record);
      side.conversation.tree.addAll(readTurns(stored?.turns ?? []), stored?.record.shown);
      side.conversation.tree.markInterrupted();
    }
    comparison.#follow();
    comparison.#keepInTab();
    return comparison;
  }

  /** Called when Play begins to show it, or the conversations again. */
  set shown(isShown: boolean) {
    this.#isShown = isShown;
    this.#keepInTab();
  }

  /** A question was asked. */
  get hasBegun(): boolean {
    return this.sides.some(({ conversation }) => conversation.turns.length > 0);
  }

  get running(): boolean {
    return this.sides.some(({ conversation }) => conversation.running);
  }

  /** Why the question was not asked, as a sentence; "" if it was. */
  get problem(): string {
    return this.#problem;
  }

  /** Asks both. Returns false if neither was asked. */
  ask(text: string, images: readonly string[], files: readonly AttachedFile[] = []): boolean {
    const wasRequested =
      this.#canAsk() && this.sides.every(({ conversation }) => conversation.ask(text, images, files));
    this.#keepInTab();
    return wasRequested;
  }

  /** Asks both an earlier question again, in other words if `text` is there. */
  repeat(round: number, text?: string): boolean {
    return this.#canAsk() && this.sides.every(({ conversation }) => conversation.repeat(round, text));
  }

  stop(): void {
    for (const { conversation } of this.sides) conversation.stop();
  }

  /** Begins new conversations with the same settings. */
  clear(): void {
    this.stop();
    this.#problem = "";
    for (const { name } of this.sides) this.#store.forget(this.#idOf(name));
    this.#id = newId();
    for (const side of this.sides) side.conversation = this.#newConversation(side.name, side.settings);
    this.#follow();
    keepTabComparison(undefined);
    this.changed();
  }

  /** Shows why nothing was asked; `reason` without its full stop. */
  refuse(reason: string): void {
    this.#problem = `Not asked yet: ${reason}.`;
    announcement.say(this.#problem);
    this.changed();
  }

  /** Neither is asked unless both can be: the questions of both stay the same. */
  #canAsk(): boolean {
    for (const { name, settings } of this.sides) {
      try {
        requestBody(settings, []);
      } catch (error) {
        this.refuse(`in the settings of ${name}, ${error instanceof Error ? error.message : String(error)}`);
        return false;
      }
    }
    this.#problem = "";
    return true;
  }

  #newConversation(name: Side["name"], settings: Settings, record?: ConversationRecord): ComparedConversation {
    const of = record ?? { id: this.#idOf(name) };
    const conversation = new ComparedConversation(settings, this, of, this.#store);
    conversation.subscribe(() => this.#sideChanged());
    return conversation;
  }

  #idOf(name: Side["name"]): string {
    return `${this.#id}/${name}`;
  }

  #follow(): void {
    this.#store.open = this.sides.map(({ conversation }) => conversation);
  }

  /** So that a reload does not end it. A comparison that has not begun is not kept. */
  #keepInTab(): void {
    if (!this.hasBegun) return;
    if (!this.#followsSettings) for (const { settings } of this.sides) settings.subscribe(() => this.#keepInTab());
    this.#followsSettings = true;
    const [a, b] = this.sides.map(({ settings }) => settingsText(settings, settings.model));
    keepTabComparison({ id: this.#id, shown: this.#isShown, settings: [a ?? "", b ?? ""] });
  }

  #sideChanged(): void {
    const { running } = this;
    if (this.#wasRunning && !running) {
      const [a, b] = this.sides.map(({ conversation }) => lastAnswer(conversation.turns));
      if (a && b) announcement.say(verdict(measuresOf(a), measuresOf(b)));
    }
    this.#wasRunning = running;
    this.changed();
  }
}

/** A conversation of a comparison: to change an earlier question changes it for both. */
export class ComparedConversation extends Conversation {
  readonly #comparison: Comparison;

  constructor(settings: Settings, comparison: Comparison, record: Partial<ConversationRecord>, keeper: Keeper) {
    super(settings, record, keeper);
    this.#comparison = comparison;
  }

  /** Only the latest versions are compared. */
  override get isKept(): boolean {
    return false;
  }

  override askInstead(id: Turn["id"], text: string): boolean {
    return this.#comparison.repeat(this.#roundOf(id), text);
  }

  /** The last answer is requested again for this side alone; an earlier one for both. */
  override askAgain(id: Turn["id"]): boolean {
    const round = this.#roundOf(id);
    return round === roundsOf(this.turns).length - 1 ? super.askAgain(id) : this.#comparison.repeat(round);
  }

  /** Asks an earlier question again, on this side. */
  repeat(round: number, text?: string): boolean {
    const question = roundsOf(this.turns)[round]?.question;
    return question !== undefined && super.askInstead(question.id, text ?? question.text);
  }

  #roundOf(id: Turn["id"]): number {
    return roundsOf(this.turns).findIndex(({ question, turns }) => [question, ...turns].some((turn) => turn.id === id));
  }
}

/** A question, and what followed it. */
export interface Round {
  readonly question: QuestionTurn;
  readonly turns: readonly Turn[];
}

export function roundsOf(turns: readonly Turn[]): readonly Round[] {
  const rounds: { question: QuestionTurn; turns: Turn[] }[] = [];
  for (const turn of turns) {
    if (turn.kind === "question") rounds.push({ question: turn, turns: [] });
    else rounds.at(-1)?.turns.push(turn);
  }
  return rounds;
}

export function lastAnswer(turns: readonly Turn[]): Answer | undefined {
  return turns.findLast((turn): turn is AnswerTurn => turn.kind === "answer")?.answer;
}

/** A setting in which the two sides differ, with the value of each in words. */
export interface Difference {
  readonly name: string;
  readonly values: readonly [a: string, b: string];
}

/** Longest value that is shown in full, in characters. */
const maxShownLength = 60;

/** The settings other than the model in which two sides differ. `defaults`: the known ones of the model of each side. */
export function differencesOf(
  sides: readonly [a: SettingsValues, b: SettingsValues],
  defaults: readonly (ReadonlyMap<string, KnownDefault> | undefined)[] = [],
): readonly Difference[] {
  const [ofA, ofB] = sides.map(namedSettings);
  if (!ofA || !ofB) return [];
  return [...new Set([...ofA.keys(), ...ofB.keys()])].flatMap((name) => {
    const [a = "", b = ""] = [ofA.get(name), ofB.get(name)];
    if (a === b) return [];
    const isParameter = sides.some(({ parameters }) => Object.hasOwn(parameters, name));
    const words = (text: string, side: number): string => {
      if (name === "tools") return sides[side]?.tools.map(({ name }) => name).join(", ") || "none";
      const known = defaults[side]?.get(name)?.value;
      if (text !== "") return text.length > maxShownLength ? `${text.slice(0, maxShownLength)}…` : text;
      if (!isParameter) return "none";
      return known === undefined ? "default" : `${known} (default)`;
    };
    return [{ name, values: [words(a, 0), words(b, 1)] as const }];
  });
}

function namedSettings(values: SettingsValues): ReadonlyMap<string, string> {
  return new Map([
    ["system prompt", values.system.trim()],
    ["tools", values.tools.map((tool) => JSON.stringify({ ...tool, id: 0 })).join()],
    ["tool_choice", values.toolChoice.replace(/^tool:/, "")],
    ["hosted_tools", values.hostedTools.join(", ")],
    ["response_format", values.format === "text" ? "" : `${values.format} ${values.schema}`.trim()],
    ["n", values.choices === 1 ? "" : String(values.choices)],
    ["top_logprobs", values.alternatives === undefined ? "" : String(values.alternatives)],
    ...Object.entries(values.parameters).map(([name, text]) => [name, text.trim()] as const),
  ]);
}

/** The numbers of an answer; absent: unknown. Times in milliseconds, as the page measured them; `prefillMs` as the server reports it. */
export interface Measures {
  readonly state: Answer["state"];
  readonly tokensPerSecond?: number;
  readonly firstMs?: number;
  readonly totalMs?: number;
  readonly tokens?: number;
  readonly promptTokens?: number;
  readonly cachedTokens?: number;
  readonly prefillMs?: number;
}

export function measuresOf(answer: Answer): Measures {
  const { state, usage, firstAfterMs, lastAfterMs, prefillMs } = answer;
  // A short answer comes in one chunk, whose time the page cannot measure.
  const tokensPerSecond = answer.tokensPerSecond ?? answer.reportedTokensPerSecond;
  const cachedTokens = usage?.promptDetails?.["cached_tokens"];
  return {
    state,
    ...(tokensPerSecond !== undefined && { tokensPerSecond }),
    ...(firstAfterMs !== undefined && { firstMs: firstAfterMs }),
    ...(lastAfterMs !== undefined && { totalMs: lastAfterMs }),
    ...(usage && { tokens: usage.completionTokens, promptTokens: usage.promptTokens }),
    ...(cachedTokens !== undefined && { cachedTokens }),
    ...(prefillMs !== undefined && { prefillMs }),
  };
}

/** A row of the table below two answers. `better`: the index of the better one. */
export interface MeasureRow {
  readonly name: string;
  readonly values: readonly [a: string, b: string];
  readonly better?: 0 | 1;
}

/** The numbers of two answers side by side. Rows without a value are left out. */
export function measureRows(a: Measures, b: Measures): readonly MeasureRow[] {
  const row = (
    name: string,
    words: (of: Measures) => string | undefined,
    score?: (of: Measures) => number | undefined,
    noticeable = 0,
  ): MeasureRow[] => {
    const [one, other] = [words(a), words(b)];
    if (one === undefined && other === undefined) return [];
    const values = [one ?? "unknown", other ?? "unknown"] as const;
    const [scoreA, scoreB] = [score?.(a), score?.(b)];
    if (scoreA === undefined || scoreB === undefined || isSame(scoreA, scoreB, noticeable) || one === other)
      return [{ name, values }];
    return [{ name, values, better: scoreA > scoreB ? 0 : 1 }];
  };
  const negative = (value: number | undefined): number | undefined => (value === undefined ? undefined : -value);
  return [
    ...row(
      "Tokens per second",
      ({ tokensPerSecond: speed }) => (speed === undefined ? undefined : count(Math.round(speed))),
      ({ tokensPerSecond }) => tokensPerSecond,
    ),
    ...row(
      "First token after",
      ({ firstMs }) => duration(firstMs),
      ({ firstMs }) => negative(firstMs),
      noticeableMs,
    ),
    ...row(
      "Finished in",
      ({ totalMs }) => duration(totalMs),
      ({ totalMs }) => negative(totalMs),
      noticeableMs,
    ),
    ...row("Answer tokens", ({ tokens }) => (tokens === undefined ? undefined : count(tokens))),
    ...row("Prompt tokens", ({ promptTokens }) => (promptTokens === undefined ? undefined : count(promptTokens))),
    ...row("Of them cached", ({ cachedTokens, promptTokens = 0 }) =>
      cachedTokens === undefined ? undefined : `${count(cachedTokens)} (${share(cachedTokens, promptTokens)})`,
    ),
    ...row("Cost of the prompt", ({ cachedTokens = 0, promptTokens, prefillMs }) =>
      promptTokens === undefined || prefillMs === undefined
        ? undefined
        : `${countInWords(promptTokens - cachedTokens, "token")} processed in ${duration(prefillMs)}`,
    ),
  ];
}

/** Smaller differences count as none; those of times also below `noticeableMs`. */
const noticeableShare = 0.05;
const noticeableMs = 10;

function isSame(a: number, b: number, noticeable = 0): boolean {
  return Math.abs(a - b) < Math.max(noticeable, noticeableShare * Math.max(Math.abs(a), Math.abs(b)));
}

/** A sentence or two on which answer was faster, and by how much. */
export function verdict(a: Measures, b: Measures): string {
  const failed = [a, b].flatMap(({ state }, at) =>
    state === "done" ? [] : [`${names[at]} ${endings[state] ?? "is not complete"}`],
  );
  if (failed.length > 0) return `Not compared: ${failed.join(" and ")}.`;
  const sentences: string[] = [];
  const [speedA, speedB] = [a.tokensPerSecond, b.tokensPerSecond];
  if (speedA !== undefined && speedB !== undefined) {
    const ratio = Math.max(speedA, speedB) / Math.min(speedA, speedB);
    const [fast, slow] = speedA > speedB ? names : names.toReversed();
    if (isSame(speedA, speedB)) sentences.push("Both generated at the same speed.");
    else if (ratio < 1.5) sentences.push(`${fast} generated ${Math.round((ratio - 1) * 100)} % faster than ${slow}.`);
    else sentences.push(`${fast} generated ${ratio.toFixed(1)} times as fast as ${slow}.`);
  }
  for (const [value, verb] of [
    ["firstMs", "began"],
    ["totalMs", "finished"],
  ] as const) {
    const [msA, msB] = [a[value], b[value]];
    if (msA === undefined || msB === undefined) continue;
    const [early, late] = msA < msB ? names : names.toReversed();
    sentences.push(
      isSame(msA, msB, noticeableMs)
        ? `Both ${verb} at the same time.`
        : `${early} ${verb} ${duration(Math.abs(msA - msB))} before ${late}.`,
    );
  }
  return sentences.length > 0 ? sentences.join(" ") : "Not compared: the servers reported no numbers.";
}

const names = ["A", "B"] as const;
const endings: Readonly<Record<string, string>> = { stopped: "was stopped", failed: "failed" };

function count(number: number): string {
  return number.toLocaleString("en");
}

function share(part: number, whole: number): string {
  return whole === 0 ? "0 %" : `${Math.round((part / whole) * 100)} %`;
}

function duration(ms: number): string;
function duration(ms: number | undefined): string | undefined;
function duration(ms: number | undefined): string | undefined {
  if (ms === undefined) return undefined;
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}
