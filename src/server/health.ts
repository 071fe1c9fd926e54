import { FailureError } from "../core/failure.ts";
import type { HeaderFields } from "./exchange.ts";
import type { Reply } from "./reply.ts";
import type { HealthReport, Service } from "./service.ts";

export function healthOf({
  state,
  directory,
  requests,
}: Pick<Service, "state" | "directory" | "requests">): HealthReport {
  const engines = directory.engines.map(({ name, engine }) => ({
    name,
    models: engine.models().map((model) => model.id),
    ...engine.health(),
  }));
  const { open, total, cancelled, failed } = requests;
  return { state, engines, requests: { open, total, cancelled, failed } };
}

/**
 * `GET /health`: 200 when at least one engine can answer, else 503; sums over all engines and, to those who have a key where one is
 * needed, what each engine does.
 */
export async function answerHealth(reply: Reply, service: Service): Promise<void> {
  const own = healthOf(service);
  const { state, engines, requests } = (await service.others?.health(own)) ?? own;
  const slots = { busy: 0, total: 0 };
  let queued = 0;
  for (const engine of engines) {
    slots.busy += engine.slots?.busy ?? 0;
    slots.total += engine.slots?.total ?? 0;
    queued += engine.queued ?? 0;
  }
  // One that is not loaded is, as soon as it is asked for.
  const serves = state === "ready" && engines.some((engine) => engine.state === "ready" || engine.state === "unloaded");
  const missing = engines.filter((engine) => engine.state === "failed").map(({ name }) => name);
  const waits =
    state === "loading" || engines.some((engine) => engine.state === "loading" || engine.state === "restarting");
  const status = serves ? "ok" : state === "closing" ? "closing" : waits ? "loading" : "unavailable";
  const headers: HeaderFields = serves ? {} : { "retry-after": "1" };
  reply.send(
    serves ? 200 : 503,
    "application/json",
    JSON.stringify({
      status,
      slots,
      queued,
      requests,
      ...(missing.length > 0 && !reply.isStranger && { missing }),
      ...(!reply.isStranger && { engines }),
    }),
    headers,
  );
}

/**
 * `GET /health/live`: 200 as long as the process answers at all. Who restarts it on a bad answer must not do so because a model is down.
 */
export function answerLiveness(reply: Reply): void {
  reply.send(200, "application/json", JSON.stringify({ status: "live" }));
}

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
