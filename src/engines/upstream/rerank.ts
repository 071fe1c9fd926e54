import type { RerankAnswer, RerankRequest } from "../../core/engine.ts";
import { readRanking } from "../../apis/rerank/read-response.ts";
import { writeRerankRequest } from "../../apis/rerank/write-request.ts";
import { askWhole } from "./ask-whole.ts";
import type { AskContext } from "./ask-whole.ts";

/** Asks an upstream for scores. `add`: members that every request gets. Rejects with `FailureError`. */
export async function rerank(
  request: RerankRequest,
  add: Readonly<Record<string, unknown>>,
  context: AskContext,
  signal: AbortSignal,
): Promise<RerankAnswer> {
  const body = { ...writeRerankRequest(request), ...add };
  const answer = await askWhole({ path: "/rerank", id: request.id, body }, context, signal);
  return readRanking(answer, request.documents.length);
}
