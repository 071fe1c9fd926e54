import type { NativeContext } from "../c-api/native-context.ts";
import type { Choice, Piece } from "../slot/task.ts";
import { PassWidths } from "./pass-widths.ts";
import { PrefillBudget } from "./prefill-budget.ts";
import type { RequestRun } from "../slot/task-group.ts";
import type { Sequence } from "../prompt-cache/sequence.ts";
import { maxDrafted, type SpeculationBudget } from "./speculation-budget.ts";

/** Who may have a part in a pass. */
export interface Member {
  readonly sequence: Sequence;
  readonly choice: Choice;
  readonly request: RequestRun;
  /** Who came later has the larger number. */
  readonly order: number;
}

/** A part of a pass: what one choice has in it. */
interface Part<Who extends Member> {
  readonly who: Who;
  readonly piece: Piece;
}

/** The same in the batch. */
export interface Share<Who extends Member> extends Part<Who> {
  /** Of its first token. */
  readonly index: number;
}

export interface Pass<Who extends Member> {
  readonly shares: readonly Share<Who>[];
  /** Answers that draw a token or more. */
  readonly answers: number;
  /** The same, and those whose own passes come next. */
  readonly waiting: number;
  /** Tokens of prompts, and drafted ones. */
  readonly prompted: number;
  readonly drafted: number;
}

/** For so many passes nothing is drafted after one that had no room for its drafts. */
const restAfterNoRoom = 64;
/** llama.cpp computes tokens by tiles, of at most so many: a few more than whole ones may cost as much as another one. */
const tile = 16;
/** A piece may have so many times as many tokens as it should where that ends its prompt. */
const stretch = 1.25;

/**
 * Says what is in a pass, and learns from how long passes take: a token of each answer, pieces of prompts, and drafts of how answers go
 * on, where they pay and no prompt is read beside them. Where that is faster, each answer has a pass of its own, one after the other.
 *
 * Where each sequence has its own memory, llama.cpp parts a batch into as many as there are lengths of pieces, and computes them one after
 * another (llama-batch.cpp, `split_equal`). So answers and prompts have passes by turns there, and pieces of one pass have one length.
 */
export class PassPlanner {
  readonly #context: NativeContext;
  readonly #batchSize: number;
  readonly #prefill: PrefillBudget;
  readonly #speculation: SpeculationBudget | undefined;
  readonly #widths = new PassWidths();
  readonly #promptTurns = new PromptTurns();
  /** The sequence whose answer had the last pass to itself. */
  #lastAlone = -1;
  /** So many answers are to have a token before prompts have a pass again. */
  #owed = 0;
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

  /** Fills the batch for the next pass. `members` are in the order of their sequences. */
  next<Who extends Member>(members: readonly Who[]): Pass<Who> {
    const prompts = members.filter(({ choice }) => choice.promptLeft > 0);
    if (prompts.length === 0) return this.#answers(members, true);
    const answers = members.filter(({ choice }) => choice.promptLeft === 0);
    const { unifiedKv: oneMemory } = this.#context;
    if (!oneMemory && answers.length > 0 && this.#owed > 0) {
      const pass = this.#answers(answers, false);
      this.#owed -= pass.answers;
      return pass;
    }
    this.#owed = answers.length;
    const beside = oneMemory ? answers : [];
    const allowance = this.#prefill.tokensBeside(answers.length, prompts.length);
    const tiled = Math.max(tile, Math.round((beside.length + allowance) / tile) * tile);
    const pieces = this.#pieces(this.#promptTurns.next(prompts), tiled - beside.length, beside.length);
    return this.#batch([...beside.map(answerPart), ...pieces]);
  }

  /** A token of each answer and what is drafted, or that of one of them. */
  #answers<Who extends Member>(members: readonly Who[], mayDraft: boolean): Pass<Who> {
    const alone = this.#widths.oneByOne(members.length) ? this.#nextAlone(members) : undefined;
    // Once in a round drafts are thought of.
    const drafts = mayDraft && alone?.isFirst !== false ? this.#drafts(members, alone !== undefined) : undefined;
    if (!alone || drafts)
      return this.#batch(members.map((who, at) => ({ who, piece: who.choice.answerPiece(drafts?.[at]) })));
    this.#lastAlone = alone.who.sequence.id;
    return { ...this.#batch([answerPart(alone.who)]), waiting: members.length };
  }

  /** Whose turn it is, of answers that have passes of their own. */
  #nextAlone<Who extends Member>(
    members: readonly Who[],
  ): { readonly who: Who; readonly isFirst: boolean } | undefined {
    const next = members.find(({ sequence }) => sequence.id > this.#lastAlone);
    const who = next ?? members[0];
    return who && { who, isFirst: !next };
  }

  /** Pieces of prompts, of about so many tokens in all, beside so many answers. */
  #pieces<Who extends Member>(prompts: readonly Who[], allowance: number, answers: number): Part<Who>[] {
    const parts: Part<Who>[] = [];
    let outputs = this.#context.maxOutputs - answers - prompts.length;
    let room = Math.min(allowance * stretch, this.#batchSize - answers);
    let left = Math.min(allowance, room);
    for (const who of prompts) {
      const { choice } = who;
      const [first] = parts;
      const length = this.#context.unifiedKv ? undefined : first?.piece.tokens.length;
      const most = length ?? (choice.promptLeft <= room ? choice.promptLeft : left);
      if (most <= 0 || most > room || choice.promptLeft < most) continue;
      const piece = choice.piece(most, outputs + 1);
      if (length !== undefined && piece.tokens.length !== length) continue;
      parts.push({ who, piece });
      outputs -= Math.max(0, piece.outputs - 1);
      room -= piece.tokens.length;
      left -= piece.tokens.length;
    }
    return parts;
  }

  #batch<Who extends Member>(parts: readonly Part<Who>[]): Pass<Who> {
    const { batch } = this.#context;
    const shares: Share<Who>[] = [];
    let answers = 0;
    let prompted = 0;
    let drafted = 0;
    batch.clear();
    // llama.cpp parts a batch where the sequences in it do not ascend.
    for (const { who, piece } of parts.toSorted((one, other) => one.who.sequence.id - other.who.sequence.id)) {
      const { tokens } = piece;
      if (who.choice.promptLeft > 0) prompted += tokens.length;
      else {
        answers++;
        drafted += tokens.length - 1;
      }
      const { length, id } = who.sequence;
      const index = batch.length;
      const silent = tokens.length - piece.outputs;
      for (const [i, token] of tokens.entries()) batch.add(token, length + i, id, i >= silent);
      shares.push({ who, piece, index });
    }
    return { shares, answers, waiting: answers, prompted, drafted };
  }

  /** What is drafted for each; undefined: for nobody anything. `oneByOne`: without drafts, each would have a pass of its own. */
  #drafts(members: readonly Member[], oneByOne: boolean): readonly (readonly number[])[] | undefined {
    if (!this.#speculation) return undefined;
    const room = Math.min(maxDrafted, this.#context.maxOutputs - members.length, this.#batchSize - members.length);
    const most = this.#rest > 0 ? 0 : room;
    if (this.#rest > 0) this.#rest--;
    const drafts = members.map(({ choice, request }) => choice.draft(Math.min(most, request.tokensAhead - 1)));
    if (drafts.every(({ tokens }) => tokens.length === 0)) return undefined;
    const chances = drafts.map((draft) => draft.chances);
    const alone = oneByOne ? this.#widths.expectedMs(1) : undefined;
    const otherwise = alone && alone * members.length;
    const lengths = this.#speculation.plan(chances, { answers: members.length, most, otherwise });
    if (lengths.every((length) => length === 0)) return undefined;
    return drafts.map(({ tokens }, at) => tokens.slice(0, lengths[at]));
  }

  /** How long it will take, in milliseconds, as far as is known. */
  expectedMs({ answers, prompted, drafted }: Pass<Member>): number {
    const plain = prompted > 0 ? undefined : this.#widths.expectedMs(answers);
    const known = drafted > 0 ? this.#speculation?.expectedMs(answers, drafted) : plain;
    return known ?? this.#prefill.expectedMs(prompted);
  }

  /** It took so long. */
  observe({ answers, waiting, prompted, drafted }: Pass<Member>, ms: number): void {
    if (prompted > 0) this.#prefill.observe(prompted, ms, this.#widths.fasterMs(answers));
    else if (drafted === 0) this.#prefill.observe(0, (ms * waiting) / answers);
    if (prompted === 0) this.#speculation?.observe(answers, drafted, ms);
  }

  /** With all that belongs to it, drawing and telling, it took so long. */
  observeStep({ answers, prompted, drafted }: Pass<Member>, ms: number): void {
    if (prompted === 0 && drafted === 0) this.#widths.observe(answers, ms);
  }

  /** There was no room for it. True: without drafts there may be. */
  canDoWithLess({ drafted }: Pass<Member>): boolean {
    if (drafted > 0) this.#rest = restAfterNoRoom;
    return drafted > 0;
  }
}

function answerPart<Who extends Member>(who: Who): Part<Who> {
  return { who, piece: who.choice.answerPiece() };
}

/** A prompt that waits to be read. */
export interface WaitingPrompt {
  readonly choice: { readonly promptLeft: number };
  /** Who came later has the larger number. */
  readonly order: number;
}

/**
 * Which prompts are read first: by turns the one with the least left, so that a short one does not wait for a long one to end, and the
 * one that came first, so that short ones that keep coming do not hold it up for ever.
 */
export class PromptTurns {
  #shortestFirst = true;

  next<Prompt extends WaitingPrompt>(prompts: readonly Prompt[]): readonly Prompt[] {
    const shortestFirst = this.#shortestFirst;
    this.#shortestFirst = !shortestFirst;
    return prompts.toSorted(
      (one, other) => (shortestFirst ? one.choice.promptLeft - other.choice.promptLeft : 0) || one.order - other.order,
    );
  }
}
