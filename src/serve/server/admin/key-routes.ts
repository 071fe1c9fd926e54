import { openaiErrorFormat } from "../../../wire/apis/api-error-format.ts";
import { FailureError, invalidRequest } from "../../../wire/core/failure.ts";
import { isObject } from "../../../wire/core/json.ts";
import { budgetPeriods, dayOf, keptDays } from "../../kv/spending.ts";
import type { UsageRow } from "../../kv/spending.ts";
import { refuseOtherPages, sendPrivately } from "../inspect/inspect-routes.ts";
import { readJsonBody } from "../read-json.ts";
import type { EndpointHandler, Reply, ServerRoute } from "../reply.ts";
import type { Service } from "../service.ts";
import { keyId } from "./key-control.ts";
import type { KeyControl } from "./key-control.ts";

/** The paths that show, create and revoke keys, and show what they used. */
export const keyRoutes: readonly (readonly [path: string, route: ServerRoute])[] = [
  ["/admin/keys", routeOf({ GET: listKeys, POST: createKey })],
  ["/admin/keys/{id}", routeOf({ POST: changeKey, DELETE: revokeKey })],
  ["/admin/usage", routeOf({ GET: listUsage })],
];

function routeOf(methods: Readonly<Record<string, EndpointHandler>>): ServerRoute {
  const ownPageOnly = Object.entries(methods).map(([method, answer]): [string, EndpointHandler] => [
    method,
    (reply, service, parameter) => {
      refuseOtherPages(reply);
      return answer(reply, service, parameter);
    },
  ]);
  return { conventions: openaiErrorFormat, admin: true, methods: Object.fromEntries(ownPageOnly) };
}

/** Throws `FailureError` 404. A server with managed keys has an admin key, without which no request comes here. */
function controlOf({ admin: { keys } }: Service): KeyControl {
  if (keys) return keys;
  throw new FailureError({
    message:
      "Keys of this server are in its configuration. To create and revoke keys while it runs, set managedKeys: true and an adminKey.",
    status: 404,
    kind: "not-found",
    code: "keys_not_managed",
  });
}

async function createKey(reply: Reply, service: Service): Promise<void> {
  const control = controlOf(service);
  const { key, entry } = await control.create(objectOf(await readJsonBody(reply, service)));
  service.log.info({ req: reply.requestId, key: entry.name, id: entry.id }, "key created");
  sendJson(reply, { key, ...entry });
}

async function changeKey(reply: Reply, service: Service, id: string): Promise<void> {
  const entry = await controlOf(service).change(id, objectOf(await readJsonBody(reply, service)));
  service.log.info({ req: reply.requestId, key: entry.name, id }, "key changed");
  sendJson(reply, entry);
}

async function revokeKey(reply: Reply, service: Service, id: string): Promise<void> {
  const entry = await controlOf(service).revoke(id);
  service.log.info({ req: reply.requestId, key: entry.name, id }, "key revoked");
  sendJson(reply, { ...entry, revoked: true });
}

function objectOf(body: unknown): object {
  if (isObject(body)) return body;
  throw invalidRequest('Expected a body such as {"name": "alice", "budget": {"month": 100}}.');
}

/** All keys with names, and what is used of their limits. */
async function listKeys(reply: Reply, service: Service): Promise<void> {
  const { settings, admin, stores } = service;
  const shown = [...(await settings.keys.list())].map(async (key) => {
    const { client, expiresAt } = key;
    const { name = client.owner, limits, models, hostedTools } = client;
    const managed = admin.keys?.shown(key);
    const { requests, tokens, today, open, spent } = await stores.limiter.use(name, limits ?? {});
    return {
      id: keyId(key.hash),
      name,
      source: managed ? "store" : "configuration",
      ...(models && { models }),
      ...(hostedTools && { hostedTools }),
      ...limits,
      ...managed,
      ...(expiresAt !== undefined && { expires: new Date(expiresAt).toISOString(), expired: Date.now() >= expiresAt }),
      used: {
        requestsPerMinute: Math.ceil(requests),
        tokensPerMinute: Math.ceil(tokens),
        tokensPerDay: today,
        concurrency: open,
        budget: Object.fromEntries(budgetPeriods.map((period) => [period, spent[period] / 1e9])),
      },
    };
  });
  sendJson(reply, { keys: await Promise.all(shown), managed: admin.keys !== undefined });
}

async function listUsage(reply: Reply, { stores }: Service): Promise<void> {
  const given = reply.exchange.query("days") ?? "30";
  const days = Number(given);
  if (!/^\d{1,4}$/.test(given) || days < 1 || days > keptDays)
    throw invalidRequest(`Invalid 'days': expected a number from 1 to ${keptDays}, but got '${given}'.`, "days");
  const key = reply.exchange.query("key");
  const rows = await stores.limiter.usage(dayOf(Date.now()) - days + 1);
  const shown = rows.filter(({ name }) => key === undefined || name === key).toSorted(byKeyDayAndModel);
  sendJson(reply, { usage: shown.map(shownRow) });
}

function byKeyDayAndModel(one: UsageRow, other: UsageRow): number {
  const of = ({ name, day, model }: UsageRow): string => `${name}\0${day}\0${model}`;
  return of(one) < of(other) ? -1 : 1;
}

function shownRow({
  name,
  day,
  model,
  requests,
  promptTokens,
  cachedTokens,
  completionTokens,
  cost,
}: UsageRow): object {
  return {
    key: name,
    day,
    model,
    requests,
    prompt_tokens: promptTokens,
    cached_tokens: cachedTokens,
    completion_tokens: completionTokens,
    cost: cost / 1e9,
  };
}

function sendJson(reply: Reply, value: object): void {
  sendPrivately(reply, "application/json", JSON.stringify(value));
}
