import { FailureError } from "../../core/failure.ts";
import type { Reply } from "../reply.ts";
import type { Service } from "../service.ts";

/**
 * `GET /metrics`, for Prometheus. Where the server has keys, its reader needs one of them, and one that may use all models: the numbers tell
 * of all. Where there are keys for the numbers alone, it needs one of those and no other.
 */
export async function answerMetrics(reply: Reply, { metrics, settings, directory, requests }: Service): Promise<void> {
  if (!metrics) throw thereAreNone();
  const key = reply.voice.keyIn((name) => reply.exchange.header(name));
  if (settings.metricsKeys) await settings.metricsKeys.check(key, reply.profile);
  else if (settings.keys.required && !settings.metricsOpen) {
    const client = await settings.keys.check(key, reply.profile);
    if (client.models) throw notForThisKey();
  }
  reply.send(200, metrics.contentType, await metrics.text(directory.engines, requests.open));
}

function notForThisKey(): FailureError {
  return new FailureError({
    kind: "permission",
    message: "This key is for some models only, and the numbers tell of all.",
    status: 403,
    param: null,
    code: null,
  });
}

function thereAreNone(): FailureError {
  return new FailureError({
    kind: "not-found",
    message: "This server counts nothing: its setting 'metrics' is off.",
    status: 404,
    param: null,
    code: null,
  });
}
