import type { NativeContext } from "./c-api/native-context.ts";
import type { Choice, Piece } from "./choice.ts";
import { PrefillBudget } from "./prefill-budget.ts";
import type { RequestRun } from "./request-run.ts";
import type { Sequence } from "./sequence.ts";
import { mostDrafted, type SpeculationBudget } from "./speculation-budget.ts";

/** Who may have a part in a pass. */
export interface Member {
  readonly sequence: Sequence;
  readonly choice: Choice;
  readonly request: RequestRun;
}

/** A part of a pass: what one choice has in it. */
export interface Share<Who extends Member> {
  readonly who: Who;
  readonly piece: Piece;
  /** Of its first token, in the batch. */
  readonly index: number;
}

export interface Pass<Who extends Member> {
  readonly shares: readonly Share<Who>[];
  /** Answers that draw a token or more. */
  readonly answers: number;
  /** Tokens of prompts, and drafted ones. */
  readonly prompted: number;
  readonly drafted: number;
}

/** For so many passes nothing is drafted after one that had no room for its drafts. */
const restAfterNoRoom = 64;

/**
 * Says what is in a pass, and learns from how long passes take: a token of each answer, pieces of prompts, and drafts of how answers go
 * on, where they pay and no prompt is read beside them.
 */
export class PassPlanner {
  readonly #context: NativeContext;
  readonly #batchSize: number;
  readonly #prefill: PrefillBudget;
  readonly #speculation: SpeculationBudget | undefined;
  /** So many passes go without drafts. */
  #rest = 0;

  /** `speculation` undefined: nothing is drafted. `slots`: how many answers there may be. */
  constructor(options: {
    readonly context: NativeContext;
    readonly batchSize: number;
    readonly slots: number;
    readonly speculation: SpeculationBudget | undefined;
  }) {
    const { context, batchSize, slots, speculation } = options;
    this.#context = context;
    this.#batchSize = batchSize;
    this.#prefill = new PrefillBudget(batchSize - slots);
    this.#speculation = speculation;
  }

  /** Fills the batch, in the order of the members. */
  fill<Who extends Member>(members: readonly Who[]): Pass<Who> {
    const { batch } = this.#context;
    const prompting = members.filter(({ choice }) => choice.promptLeft > 0).length;
    const answers = members.length - prompting;
    const drafts = prompting === 0 && this.#speculation ? this.#drafts(members, this.#speculation) : undefined;
    const shares: Share<Who>[] = [];
    let allowance = this.#prefill.tokensBeside(answers, prompting);
    let outputs = this.#context.outputs - members.length;
    let prompted = 0;
    let drafted = 0;
    batch.clear();
    for (const [at, who] of members.entries()) {
      const { choice, sequence } = who;
      const isPrompt = choice.promptLeft > 0;
      if (isPrompt && allowance <= 0) continue;
      const piece = isPrompt ? choice.piece(allowance, outputs + 1) : choice.answerPiece(drafts?.[at]);
      const { tokens } = piece;
      if (isPrompt) {
        allowance -= tokens.length;
        prompted += tokens.length;
        outputs -= Math.max(0, piece.outputs - 1);
      } else drafted += tokens.length - 1;
      const { length, id } = sequence;
      const index = batch.length;
      const silent = tokens.length - piece.outputs;
      for (const [i, token] of tokens.entries()) batch.add(token, length + i, id, i >= silent);
      shares.push({ who, piece, index });
    }
    return { shares, answers, prompted, drafted };
  }

  /** What is drafted for each; undefined: for nobody anything. */
  #drafts(members: readonly Member[], speculation: SpeculationBudget): readonly (readonly number[])[] | undefined {
    const room = Math.min(mostDrafted, this.#context.outputs - members.length, this.#batchSize - members.length);
    const most = this.#rest > 0 ? 0 : room;
    if (this.#rest > 0) this.#rest--;
    const drafts = members.map(({ choice, request }) => choice.draft(Math.min(most, request.tokensAhead - 1)));
    if (drafts.every(({ tokens }) => tokens.length === 0)) return undefined;
    const chances = drafts.map((draft) => draft.chances);
    const lengths = speculation.plan(chances, members.length, most);
    return drafts.map(({ tokens }, at) => tokens.slice(0, lengths[at]));
  }

  /** How long it will take, in milliseconds, as far as is known. */
  expectedMs({ answers, prompted, drafted }: Pass<Member>): number {
    const known = drafted > 0 ? this.#speculation?.expectedMs(answers, drafted) : undefined;
    return known ?? this.#prefill.expectedMs(prompted);
  }

  /** It took so long. */
  observe({ answers, prompted, drafted }: Pass<Member>, ms: number): void {
    if (drafted === 0) this.#prefill.observe(prompted, ms);
    if (prompted === 0) this.#speculation?.observe(answers, drafted, ms);
  }

  /** There was no room for it. True: without drafts there may be. */
  canDoWithLess({ drafted }: Pass<Member>): boolean {
    if (drafted > 0) this.#rest = restAfterNoRoom;
    return drafted > 0;
  }
}
