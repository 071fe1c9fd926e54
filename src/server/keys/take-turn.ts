import { rateLimitReached } from "../../apis/rate-limits.ts";
import type { Reply } from "../reply.ts";
import type { Service } from "../service.ts";
import { Turn } from "./turn.ts";

/**
 * Takes a request within its client's limits, where it has some; `tokens`: what the prompt is estimated to have, 0 for a request that
 * costs none; `reserved`: what its answer may have. What is left of the limits goes into the answer's headers. Rejects with `FailureError` 429.
 */
export async function takeTurn(
  reply: Reply,
  { limiter }: Service,
  tokens: number,
  reserved = 0,
): Promise<Turn | undefined> {
  const { client } = reply;
  if (!client?.limits) return undefined;
  const { name = client.owner } = client;
  const taken = await limiter.take(name, client.limits, tokens, reserved);
  reply.addHeaders(reply.voice.limitHeaders(taken.levels, Date.now()));
  if ("bound" in taken) throw rateLimitReached(taken, name);
  const turn = new Turn(taken, tokens);
  reply.turn = turn;
  return turn;
}
