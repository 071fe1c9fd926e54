import { FailureError } from "../../core/failure.ts";
import type { GenerationEnd } from "../../core/events.ts";
import type { AttemptObserver } from "../../core/generation-observer.ts";
import { RepairLog } from "../../apis/tolerant/repairs.ts";
import { failureOfText, readFailure } from "../../apis/tolerant/read-failure.ts";
import { parseTolerantly } from "../../apis/tolerant/tolerant-json.ts";
import { passedHeaders, retryAfterSeconds } from "./answer-headers.ts";
import type { Target } from "./target.ts";
import type { TargetSet } from "./target-set.ts";
import { answerTooLong, transportFailure } from "./transport-failure.ts";

/** A request that is answered with one JSON value. */
export interface WholeRequest {
  /** Below the base URL. */
  readonly path: string;
  /** The path stands beside the base URL's `/v1`, not below it. */
  readonly besideVersion?: boolean;
  /** The server's id for the request. */
  readonly id: string;
  readonly body: object;
}

export interface AskContext {
  readonly targets: TargetSet;
  readonly headers: Readonly<Record<string, string>>;
  /** Of the answer, in characters. */
  readonly limit: number;
  /** Follows the attempt at a server, where anybody does. */
  readonly observe?: (target: Target) => AttemptObserver | undefined;
}

/**
 * Asks an upstream and reads its whole answer, of any shape. A server that cannot be reached is passed over for the next one. Rejects
 * with `FailureError`.
 */
export async function askWhole(request: WholeRequest, context: AskContext, signal: AbortSignal): Promise<unknown> {
  const tried = new Set<Target>();
  for (;;) {
    const target = context.targets.choose(tried);
    tried.add(target);
    target.outstanding++;
    const observer = context.observe?.(target);
    const headers = observer ? { ...context.headers, ...observer.headers } : context.headers;
    try {
      const answer = await askOne(request, target, { ...context, headers }, signal);
      context.targets.succeeded(target);
      observer?.ended({ kind: "done" });
      return answer;
    } catch (error) {
      observer?.ended(endOf(error, signal));
      if (!(error instanceof FailureError)) throw error;
      if (error.failure.status < 500) throw error;
      context.targets.failed(target, error.failure.cause);
      if (signal.aborted || !context.targets.hasFresh(tried)) throw error;
    } finally {
      target.outstanding--;
    }
  }
}

function endOf(error: unknown, { aborted }: AbortSignal): GenerationEnd {
  if (aborted || !(error instanceof FailureError)) return { kind: "client-gone" };
  return { kind: "upstream-error", failure: error.failure };
}

async function askOne(
  request: WholeRequest,
  target: Target,
  { headers, limit }: AskContext,
  signal: AbortSignal,
): Promise<unknown> {
  const { status, received, text } = await exchange();
  const body = parseTolerantly(text, new RepairLog());
  if (status !== 200) {
    const retryAfter = retryAfterSeconds(received, Date.now());
    throw new FailureError({
      ...(readFailure(body, status) ?? failureOfText(text, status)),
      ...(retryAfter !== undefined && { retryAfterSeconds: retryAfter }),
      headers: passedHeaders(received),
    });
  }
  return body;

  async function exchange(): Promise<{ status: number; received: Parameters<typeof passedHeaders>[0]; text: string }> {
    try {
      const {
        statusCode,
        headers: received,
        body,
      } = await target.transport.request({
        method: "POST",
        path: request.besideVersion ? target.rootPath(request.path) : target.path(request.path),
        headers: {
          ...headers,
          "content-type": "application/json",
          accept: "application/json",
          "x-request-id": request.id,
        },
        body: JSON.stringify(request.body),
        signal,
      });
      const decoder = new TextDecoder();
      let text = "";
      for await (const piece of body) {
        text += decoder.decode(piece, { stream: true });
        if (text.length > limit) throw new FailureError(answerTooLong(limit).failure);
      }
      return { status: statusCode, received, text };
    } catch (error) {
      if (error instanceof FailureError) throw error;
      throw new FailureError(transportFailure(error instanceof Error ? error : new Error(String(error)), target.url));
    }
  }
}
