import { FailureError, loggedError } from "../../../wire/core/failure.ts";
import type { LogListener } from "../../../wire/core/generation-observer.ts";
import { localEndpoints } from "../file/local-endpoints.ts";
import { ModelOpenError } from "../model-open-error.ts";
import type { OpenProgress } from "../options.ts";
import {
  maxTokensPerMessage,
  type ModelAnswer,
  type FromModel,
  type OpenModelMessage,
  type ModelQuestion,
  type StepMessage,
  type ToModel,
} from "../protocol.ts";
import type { PrefillLimits } from "./batch/plan.ts";
import { Embedder, EmbeddingLoop } from "./embeddings/embedder.ts";
import { Embeddings } from "./embeddings/embeddings.ts";
import { AsyncLock } from "./event-loop-share.ts";
import { Intake } from "./intake.ts";
import { canDropDrafts, openModel, type OpenModel } from "./open-model.ts";
import { PreparingThread } from "./preparing-thread.ts";
import type { PersistedPromptCache } from "./prompt-cache/persisted-prompt-cache.ts";
import { constraintOpener } from "./sampling/constraint.ts";
import { reasoningBans } from "./sampling/token-limits.ts";
import { Scheduler } from "./scheduler.ts";
import { inspectedPrompts, renderedPrompt } from "./slot/prompt-report.ts";
import { TextSplitter, tokenizePrompt } from "./tokens/tokenize-prompt.ts";
import { watchProcess } from "../../lifecycle/limit-memory.ts";
import { ignoreTerminalSignals } from "../../lifecycle/terminal-signals.ts";
import { bytesOf, type Vocabulary } from "./tokens/vocabulary.ts";
import { random } from "../../../wire/random/random.ts";

/*
 * The entry point of a model's process, which `ModelProcess` starts with a channel to the server's process. The first message says which
 * model to open. The process lives as long as the channel.
 */
if (process.send === undefined) throw new Error("This module is started by Truewire itself, as a process of its own.");

ignoreTerminalSignals();
// There is nothing to save, and an orderly exit would wait for the library's threads.
process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));
watchProcess();

/** Time limits for the preparation of a request and the check of an answer, which may delay a request. Milliseconds. */
const limitMs = { prepare: 10_000, check: 2_000 };
/** Progress is sent at steps of this size, and at this interval in any case: a load without progress is ended. */
const progressStep = 0.01;
const maxProgressIntervalMs = 10_000;

let scheduler: Scheduler | undefined;
/** Runs instead of the scheduler where the model only computes embeddings. */
let embeddingLoop: EmbeddingLoop | undefined;
let intake: Intake | undefined;
let vocabulary: Vocabulary | undefined;
let persistedCache: PersistedPromptCache | undefined;
let embedder: Embedder | undefined;
let embeddings: Embeddings | undefined;

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
      send({ type: "pong", turn: (scheduler ?? embeddingLoop)?.turn ?? null });
  }
});

function send(message: FromModel): void {
  process.send?.(message);
}

/** Writes the prompt cache to its files before the process is ended. */
function leave(): void {
  const cache = persistedCache;
  if (!scheduler || !cache) return send({ type: "left" });
  scheduler.betweenSteps((sequences) => {
    cache.write(sequences);
    send({ type: "left" });
  });
}

async function lookUp(id: number, question: ModelQuestion): Promise<void> {
  const answer = await answerTo(id, question).catch((error: unknown) => failed(error));
  if (answer) send({ type: "looked-up", id, answer });
}

/** Resolves with `null` if the client has disconnected. */
async function answerTo(id: number, question: ModelQuestion): Promise<ModelAnswer | null> {
  if (!vocabulary || !intake) throw new Error("The model is not open.");
  switch (question.about) {
    case "slots":
      return { about: "slots", slots: scheduler?.slots() ?? [] };
    case "end-reasoning":
      return { about: "end-reasoning", wasReasoning: scheduler?.endReasoning(question.requestId) ?? false };
    case "usage":
      return { about: "usage", usage: scheduler?.usageOf(question.requestId) ?? null };
    case "bytes":
      return { about: "bytes", bytes: bytesOf(vocabulary, question.tokens).toString("base64") };
    case "tokens": {
      const tokens = await intake.tokensOf(id, question.asked, question.owner);
      if (tokens && question.wants !== "count") await sendTokens(id, tokens, question.wants === "bytes" && vocabulary);
      return tokens && { about: "tokens", count: tokens.length };
    }
    case "prompt": {
      const { bosText } = vocabulary;
      return intake.read(id, question.asked, question.owner, (prompts) => renderedPrompt(prompts, bosText));
    }
    case "embeddings":
      if (!embeddings) throw new Error("The model makes no embeddings.");
      return embeddings.embed(id, question);
    case "scores":
      if (!embeddings) throw new Error("The model ranks no documents.");
      return embeddings.score(id, question);
  }
}

/** Sends tokens, with their bytes if there is a vocabulary, in several messages, between which the model continues. */
async function sendTokens(id: number, tokens: readonly number[], spelled: Vocabulary | false): Promise<void> {
  for (let from = 0; from < tokens.length; from += maxTokensPerMessage) {
    const some = tokens.slice(from, from + maxTokensPerMessage);
    const bytes = spelled && some.map((token) => [...spelled.bytes(token)]);
    send({ type: "looked-up", id, answer: { about: "some-tokens", tokens: some, ...(bytes && { bytes }) } });
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function failed(error: unknown): ModelAnswer {
  const failure =
    error instanceof FailureError
      ? error.failure
      : { kind: "internal" as const, status: 500, message: "The model could not answer.", cause: loggedError(error) };
  return { about: "failure", failure };
}

/** Requests that are being prepared, and requests for embeddings. */
function waiting(): number {
  return (intake?.waiting ?? 0) + (embedder?.open ?? 0);
}

/** Sends the state of the model to the server. */
function reportState(): void {
  if (scheduler) scheduler.reportState();
  else if (embedder)
    send({ type: "step", results: [], state: { busy: 0, queued: waiting(), counters: embedder.counters } });
}

function reportStep(step: StepMessage): void {
  intake?.onResults(step.results);
  send(step);
}

/** Returns a function that sends the progress of loading a model, where it has advanced enough. */
function progressReporter(): (progress: OpenProgress) => void {
  let last = { phase: "", fraction: 0, at: 0 };
  return (progress) => {
    const now = performance.now();
    const step = progress.fraction - last.fraction;
    const isStep = progress.phase !== last.phase || step >= progressStep || progress.fraction >= 1;
    if (!isStep && !(step > 0 && now - last.at > maxProgressIntervalMs)) return;
    last = { ...progress, at: now };
    send({ type: "progress", progress });
  };
}

async function open(message: OpenModelMessage): Promise<void> {
  try {
    const log: LogListener = (line, level) => send({ type: "log", line, level });
    const onGpu = (): void => send({ type: "uses-gpu" });
    const opened = await openModel(message, { onProgress: progressReporter(), onGpu, log });
    const { facts, device } = opened;
    const { chatTemplate, toolFormat, defaults, constrainCalls, queueLimit } = message;
    const setup = { facts, chatTemplate, toolFormat, defaults, constrainCalls };
    const thread = new PreparingThread({ setup, log, limitMs });
    vocabulary = opened.vocabulary;
    if (opened.embedding) {
      embedder = new Embedder({
        open: opened.embedding.open,
        limits: prefillLimits(message),
        ...(opened.embedding.plan.pooling === "rank" && { count: 1 }),
        queueLimit,
        onWork() {
          scheduler?.interrupt();
          (scheduler ?? embeddingLoop)?.wake();
        },
        onChange: reportState,
        clock: () => performance.now(),
      });
    }
    if (opened.answering) scheduler = newScheduler(message, opened, opened.answering, { thread, log });
    else if (embedder) embeddingLoop = new EmbeddingLoop(embedder);
    const { encoder } = opened;
    const tokenizer = {
      ...opened,
      encoder: encoder ?? undefined,
      maxRows: message.batchSize,
      splitter: new TextSplitter(opened.vocabulary),
      lock: new AsyncLock(),
    };
    intake = new Intake({
      thread,
      limit: message.slots + queueLimit,
      tokenize: (prompt, images, origin) => tokenizePrompt(tokenizer, prompt, undefined, images, origin),
      tokensOfText: (text) => opened.model.tokenize(text, false),
      add: (request, prompts, owner) => scheduler?.add(request, prompts, owner),
      *inspect(id, inputs, prompts) {
        send({ type: "prompts", id, prompts: yield* inspectedPrompts(opened.vocabulary, prompts, inputs) });
      },
      refuse: (id, failure) => scheduler?.refuse(id, failure),
      onCancelled: reportState,
      log,
    });
    if (opened.embedding && embedder) {
      const limits = { maxTokens: opened.embedding.plan.maxInputTokens, maxTokenLength: facts.maxTokenLength };
      embeddings = new Embeddings({ intake, embedder, tokenizer, limits });
    }
    const { path, contextSize } = facts;
    const hasTemplate = (chatTemplate ?? facts.chatTemplate) !== null;
    const endpoints = localEndpoints(opened.embedding?.plan ?? null, hasTemplate);
    send({ type: "ready", opened: { path, contextSize, endpoints, device, takes: encoder?.takes ?? {} } });
    await (scheduler ?? embeddingLoop)?.run();
  } catch (error) {
    const failure = error instanceof ModelOpenError ? error : new ModelOpenError("load-failed", String(error), error);
    send({ type: "failed", reason: failure.reason, message: failure.message });
  }
}

function prefillLimits({ batchSize, maxTokenGap, maxBatchMs }: OpenModelMessage): PrefillLimits {
  return { maxTokens: batchSize, maxGapMs: maxTokenGap, maxBatchMs };
}

function newScheduler(
  message: OpenModelMessage,
  { model, encoder, vocabulary: modelVocabulary, facts }: OpenModel,
  answering: NonNullable<OpenModel["answering"]>,
  { thread, log }: { readonly thread: PreparingThread; readonly log: LogListener },
): Scheduler {
  const { context, sequences, promptCache, adapters, draftModel } = answering;
  persistedCache = answering.persistedCache;
  return new Scheduler({
    environment: {
      model,
      context,
      adapters,
      vocabulary: modelVocabulary,
      contextSize: facts.contextSize,
      newCallId,
      ...(encoder && { rowsOf: (image, isWanted) => encoder.rows(image, isWanted), onRows: () => scheduler?.wake() }),
      openConstraint: constraintOpener(model, modelVocabulary, log),
      banReasoning: reasoningBans(modelVocabulary),
      guardsLoops: message.loopGuard !== "off",
      log,
      ...(message.debug && { debug: (line: string) => log(line, "debug") }),
    },
    sequences,
    promptCache,
    sharesPrefixes: !model.isRecurrent || promptCache.enabled,
    speculation: canDropDrafts(context) ? message.speculation : "off",
    draftModel,
    queueLimit: message.queueLimit,
    prefill: prefillLimits(message),
    report: reportStep,
    onCacheMiss: (id, miss) => send({ type: "cache-missed", id, miss }),
    ...(embedder && { background: embedder }),
    preparing: () => ({ waiting: waiting(), grammarsMade: thread.constraintsMade }),
    clock: () => performance.now(),
    random,
  });
}

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** An id for a tool call in OpenAI's form: `call_` and 24 base62 digits. */
function newCallId(): string {
  let id = "call_";
  for (let i = 0; i < 24; i++) id += base62[Math.floor(random() * base62.length)];
  return id;
}
