import { randomBytes, randomInt } from "node:crypto";
import { Worker } from "node:worker_threads";
import { FailureError } from "../../../core/failure.ts";
import { endpointsOf } from "../file/endpoints-of.ts";
import { ModelOpenError } from "../model-open-error.ts";
import type { Observe } from "../../../core/observe.ts";
import type { OpenProgress } from "../options.ts";
import {
  mostTokensTold,
  type Answer,
  type FromModel,
  type OpenMessage,
  type Question,
  type StepMessage,
  type ToModel,
} from "../protocol.ts";
import type { NativeContext } from "./c-api/native-context.ts";
import { constraintOpener } from "./sampling/constraint.ts";
import { openModel, type OpenModel } from "./open-model.ts";
import type { PersistedPromptCache } from "./prompt-cache/persisted-prompt-cache.ts";
import { writtenPrompt, inspectedPrompts } from "./slot/prompt-report.ts";
import { PreparingThread } from "./preparing-thread.ts";
import { Embedder, EmbeddingLoop } from "./embeddings/embedder.ts";
import { Embeddings } from "./embeddings/embeddings.ts";
import { Intake } from "./intake.ts";
import { AsyncLock } from "./event-loop-share.ts";
import { Scheduler } from "./scheduler.ts";
import { SpeculationBudget } from "./batch/speculation-budget.ts";
import { TextSplitter, tokenizePrompt } from "./tokens/tokenize-prompt.ts";
import { bytesOf, type Vocabulary } from "./tokens/vocabulary.ts";
import { reasoningBans } from "./sampling/token-limits.ts";

/**
 * The model's process: started by `ModelProcess` with a channel to its parent. The first message says which model to open. It lives as
 * long as the channel: when its parent is gone, so is it.
 */
if (process.send === undefined) throw new Error("This module is started by Truewire itself, as a process of its own.");

// The terminal sends its signals to all; when to stop is for the parent to say.
process.on("SIGINT", () => {});
process.on("SIGTERM", () => {});
// Nothing is to be saved, and an orderly exit would wait for the library's threads.
process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));
new Worker(new URL("./watch-parent.js", import.meta.url), { workerData: process.ppid }).unref();

/** How long the preparation of one request may take, and the check of one answer (which may keep a request waiting). */
const limitMs = { prepare: 10_000, check: 2_000 };

let scheduler: Scheduler | undefined;
let intake: Intake | undefined;
let vocabulary: Vocabulary | undefined;
let outlasting: PersistedPromptCache | undefined;
let embedder: Embedder | undefined;
let embeddings: Embeddings | undefined;
/** Of a model that only makes embeddings. */
let embeddingLoop: EmbeddingLoop | undefined;

process.on("message", (message: ToModel) => {
  switch (message.type) {
    case "open":
      void open(message);
      break;
    case "piece":
      intake?.addChunk(message.id, message.text);
      break;
    case "generate":
      void intake?.accept(message);
      break;
    case "look-up":
      void lookUp(message.id, message.question);
      break;
    case "cancel":
      intake?.cancel(message.id);
      scheduler?.cancel(message.id);
      embedder?.cancel(message.id);
      break;
    case "taken":
      scheduler?.consumed(message.id, message.tokens);
      break;
    case "leave":
      leave();
      break;
    case "ping":
      tell({ type: "pong", turn: (scheduler ?? embeddingLoop)?.turn ?? null });
  }
});

function leave(): void {
  const done = (): void => tell({ type: "left" });
  if (!scheduler || !outlasting) return done();
  const writing = outlasting;
  scheduler.betweenSteps((sequences) => {
    writing.write(sequences);
    done();
  });
}

function tell(message: FromModel): void {
  process.send?.(message);
}

async function lookUp(id: number, question: Question): Promise<void> {
  const answer = await answerTo(id, question).catch((error: unknown) => failed(error));
  if (answer) tell({ type: "looked-up", id, answer });
}

/** null: the client left. */
async function answerTo(id: number, question: Question): Promise<Answer | null> {
  if (!vocabulary || !intake) throw new Error("The model is not open.");
  switch (question.about) {
    case "slots":
      return { about: "slots", slots: scheduler?.slots() ?? [] };
    case "bytes":
      return { about: "bytes", bytes: bytesOf(vocabulary, question.tokens).toString("base64") };
    case "tokens": {
      const tokens = await intake.tokensOf(id, question.asked, question.owner);
      if (tokens && question.wants !== "count") await tellTokens(id, tokens, question.wants === "bytes" && vocabulary);
      return tokens && { about: "tokens", count: tokens.length };
    }
    case "prompt": {
      const { bosText } = vocabulary;
      return intake.read(id, question.asked, question.owner, (prompts) => writtenPrompt(prompts, bosText));
    }
    case "embeddings":
      if (!embeddings) throw new Error("The model makes no embeddings.");
      return embeddings.embed(id, question);
    case "scores":
      if (!embeddings) throw new Error("The model ranks no documents.");
      return embeddings.score(id, question);
  }
}

/** Tells tokens, with their bytes by a vocabulary, in messages between which the model works on. */
async function tellTokens(id: number, tokens: readonly number[], spelled: Vocabulary | false): Promise<void> {
  for (let from = 0; from < tokens.length; from += mostTokensTold) {
    const some = tokens.slice(from, from + mostTokensTold);
    const bytes = spelled && some.map((token) => [...spelled.bytes(token)]);
    tell({ type: "looked-up", id, answer: { about: "some-tokens", tokens: some, ...(bytes && { bytes }) } });
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function failed(error: unknown): Answer {
  const failure =
    error instanceof FailureError
      ? error.failure
      : { kind: "internal" as const, status: 500, message: "The model could not answer.", cause: String(error) };
  return { about: "failure", failure };
}

/** Requests that are not with the scheduler: in preparation, or for embeddings. */
function waiting(): number {
  return (intake?.waiting ?? 0) + (embedder?.open ?? 0);
}

/** Tells the server how busy the model is. */
function tellState(): void {
  if (scheduler) scheduler.reportState();
  else if (embedder)
    tell({ type: "step", results: [], state: { busy: 0, queued: waiting(), counters: embedder.counters } });
}

function embedderOf(
  { plan, open }: NonNullable<OpenModel["embedding"]>,
  { batchSize, queueLimit }: OpenMessage,
  clock: () => number,
): Embedder {
  return new Embedder({
    open,
    together: batchSize,
    ...(plan.pooling === "rank" && { count: 1 }),
    queueLimit,
    onWork: () => (scheduler ?? embeddingLoop)?.wake(),
    onChange: tellState,
    clock,
  });
}

async function open(message: OpenMessage): Promise<void> {
  let told = { phase: "", fraction: 0, at: 0 };
  const onProgress = (progress: OpenProgress): void => {
    const now = performance.now();
    const isNews = progress.phase !== told.phase || progress.fraction - told.fraction >= 0.01 || progress.fraction >= 1;
    // However slow it is, it is told: a load that tells nothing for long is ended.
    const isLate = progress.fraction > told.fraction && now - told.at > 10_000;
    if (!isNews && !isLate) return;
    told = { ...progress, at: now };
    tell({ type: "progress", progress });
  };
  try {
    const log: Observe = (line, level) => tell({ type: "log", line, level });
    const { facts, ...opened } = await openModel(message, { onProgress, log });
    const { chatTemplate, toolFormat, defaults, constrainCalls, speculation } = message;
    const setup = {
      facts,
      ...(chatTemplate !== undefined && { chatTemplate }),
      ...(toolFormat && { toolFormat }),
      ...(defaults && { defaults }),
      ...(constrainCalls !== undefined && { constrainCalls }),
    };
    const thread = new PreparingThread({ setup, log, limitMs });
    const report = (step: StepMessage): void => {
      intake?.passed(step.results);
      tell(step);
    };
    vocabulary = opened.vocabulary;
    embedder = opened.embedding ? embedderOf(opened.embedding, message, opened.clock) : undefined;
    if (opened.answering) {
      const { context, sequences, states, adapters } = opened.answering;
      const drafts = speculation !== "off" && canBeCut(context);
      outlasting = opened.answering.outlasting;
      scheduler = new Scheduler({
        environment: {
          model: opened.model,
          context,
          adapters,
          vocabulary: opened.vocabulary,
          contextSize: facts.contextSize,
          newCallId,
          openConstraint: constraintOpener(opened.model, opened.vocabulary, log),
          banReasoning: reasoningBans(opened.vocabulary),
          log,
        },
        sequences,
        promptCache: states,
        sharesPrefixes: !opened.model.isRecurrent || states.enabled,
        speculation: drafts ? new SpeculationBudget({ always: speculation === "always" }) : undefined,
        queueLimit: message.queueLimit,
        batchSize: message.batchSize,
        report,
        onCacheMiss: (id, miss) => tell({ type: "cache-missed", id, miss }),
        ...(embedder && { background: embedder }),
        preparing: () => ({ waiting: waiting(), grammarsMade: thread.constraintsMade }),
        clock: opened.clock,
        random: () => randomBytes(4).readUInt32LE() / 2 ** 32,
      });
    } else if (embedder) embeddingLoop = new EmbeddingLoop(embedder);
    const tokenizer = { ...opened, splitter: new TextSplitter(opened.vocabulary), lock: new AsyncLock() };
    intake = new Intake({
      thread,
      limit: message.slots + message.queueLimit,
      tokenize: (prompt) => tokenizePrompt(tokenizer, prompt),
      tokensOfText: (text) => opened.model.tokenize(text, false),
      add: (request, prompts, owner) => scheduler?.add(request, prompts, owner),
      *inspect(id, inputs, prompts) {
        tell({ type: "prompts", id, prompts: yield* inspectedPrompts(opened.vocabulary, prompts, inputs) });
      },
      refuse: (id, failure) => scheduler?.refuse(id, failure),
      onLeft: tellState,
      log,
    });
    if (opened.embedding && embedder) {
      const limits = { longest: opened.embedding.plan.longest, longestToken: facts.longestToken };
      embeddings = new Embeddings({ intake, embedder, tokenizer, limits });
    }
    const { path, contextSize } = facts;
    const hasTemplate = (chatTemplate ?? facts.chatTemplate) !== null;
    const endpoints = endpointsOf(opened.embedding?.plan ?? null, hasTemplate);
    tell({ type: "ready", opened: { path, contextSize, endpoints } });
    await (scheduler ?? embeddingLoop)?.run();
  } catch (error) {
    const failed = error instanceof ModelOpenError ? error : new ModelOpenError("load-failed", String(error), error);
    tell({ type: "failed", reason: failed.reason, message: failed.message });
  }
}

/**
 * What was guessed wrongly can be forgotten. Layers with a window keep what they need for that when all of a pass is put into one memory
 * at once.
 */
function canBeCut({ model, unifiedKv: oneMemory }: NativeContext): boolean {
  return !model.isRecurrent && (model.window === 0 || oneMemory);
}

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** An id for a tool call, as OpenAI makes them: `call_` and 24 base62 digits. */
export function newCallId(): string {
  let id = "call_";
  for (let i = 0; i < 24; i++) id += digits[randomInt(digits.length)];
  return id;
}
