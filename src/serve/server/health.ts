import { FailureError } from "../../wire/core/failure.ts";
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
    ...(engine.urls && { urls: engine.urls() }),
  }));
  const { open, total, cancelled, failed } = requests;
  return { state, engines, requests: { open, total, cancelled, failed } };
}

/**
 * `GET /health`: 200 if at least one engine can answer, otherwise 503. The body has totals over all engines and, for clients that may see
 * all models, the state of each engine.
 */
export function answerHealth(reply: Reply, service: Service): void {
  const { state, engines, requests } = healthOf(service);
  const slots = { busy: 0, total: 0 };
  let queued = 0;
  for (const engine of engines) {
    slots.busy += engine.slots?.busy ?? 0;
    slots.total += engine.slots?.total ?? 0;
    queued += engine.queued ?? 0;
  }
  // A request loads an unloaded model.
  const isServing =
    state === "ready" && engines.some((engine) => engine.state === "ready" || engine.state === "unloaded");
  const missing = engines.filter((engine) => engine.state === "failed").map(({ name }) => name);
  const isLoading =
    state === "loading" || engines.some((engine) => engine.state === "loading" || engine.state === "restarting");
  const status = isServing ? "ok" : state === "closing" ? "closing" : isLoading ? "loading" : "unavailable";
  const headers: HeaderFields = isServing ? {} : { "retry-after": "1" };
  reply.send(
    isServing ? 200 : 503,
    "application/json",
    JSON.stringify({
      status,
      slots,
      queued,
      requests,
      ...(missing.length > 0 && !reply.caller.isStranger && { missing }),
      ...(!reply.caller.isStranger && { engines: engines.map((engine) => ({ ...engine, urls: undefined })) }),
    }),
    headers,
  );
}

/** `GET /health/live`: 200 as long as the process answers. A liveness probe must not restart it because a model has failed. */
export function answerLiveness(reply: Reply): void {
  reply.send(200, "application/json", JSON.stringify({ status: "live" }));
}

/**
 * `GET /metrics`, for Prometheus. If metrics have keys of their own, one of those is required. Otherwise, if the server has keys, a key for
 * all models is required, because metrics cover all models.
 */
export async function answerMetrics(
  reply: Reply,
  { watchers: { metrics }, settings, directory, requests }: Service,
): Promise<void> {
  if (!metrics) throw metricsDisabled();
  if (settings.metricsKeys) {
    const isMetricsKey = (await settings.metricsKeys.find(reply.key)) !== undefined;
    if (!isMetricsKey && (await settings.keys.find(reply.key))) throw clientsKey();
    await settings.metricsKeys.check(reply.key, reply.profile);
  }
  if (!settings.metricsKeys && settings.keys.required && !settings.metricsOpen) {
    const client = await settings.keys.check(reply.key, reply.profile);
    if (client.models) throw restrictedKey();
  }
  reply.send(200, metrics.contentType, await metrics.text(directory.engines, requests.open));
}

function clientsKey(): FailureError {
  return new FailureError({
    kind: "authentication",
    message:
      "This is the key of a client. Metrics have keys of their own here: send one of metricsKey (--metrics-key, or TRUEWIRE_METRICS_KEY).",
    status: 401,
    param: null,
    code: null,
  });
}

function restrictedKey(): FailureError {
  return new FailureError({
    kind: "permission",
    message: "Metrics cover all models, but this key is restricted to some. Use a metrics key.",
    status: 403,
    param: null,
    code: null,
  });
}

function metricsDisabled(): FailureError {
  return new FailureError({
    kind: "not-found",
    message: "Metrics are disabled: the setting 'metrics' is off.",
    status: 404,
    param: null,
    code: null,
  });
}
