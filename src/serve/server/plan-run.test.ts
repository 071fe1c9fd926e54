import { expect, test } from "vitest";
import type { ModelInfo } from "../../wire/core/engine.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import type { Client } from "./keys/key-ring.ts";
import type { ServedModel } from "./model-directory.ts";
import { planRun } from "./plan-run.ts";
import type { PlannedRequest, RunPlan } from "./plan-run.ts";

const request: GenerationRequest = {
  id: "req_1",
  model: "served",
  prompt: { kind: "text", prompts: ["x"] },
  sampling: {},
  limits: {},
  wantsUsage: false,
  stream: true,
  extra: {},
};

function planOf(
  change: Partial<PlannedRequest>,
  { from = {}, info = {} }: { readonly from?: object; readonly info?: Partial<ModelInfo> } = {},
): RunPlan {
  const engine = { models: () => [], health: () => ({ state: "ready" }), questions: () => [] };
  const model = { info: { id: "served", ...info }, engineModel: "own", from: { engine, ...from } };
  const planned = { api: "chat", read: {}, request, client: undefined, inBackground: false };
  return planRun({ ...planned, model: model as unknown as ServedModel, ...change });
}

const withTier = (tier: unknown): GenerationRequest => ({
  ...request,
  passthrough: { api: "chat", body: { service_tier: tier } } as never,
});

const clientOf = (tier?: Client["tier"]): Client => ({ owner: "o", ...(tier && { tier }) }) as Client;

test.each<[unknown, Client | undefined, string | undefined]>([
  [undefined, undefined, undefined],
  ["auto", undefined, undefined],
  ["priority", undefined, "priority"],
  ["fast", undefined, "priority"],
  ["flex", undefined, "flex"],
  ["standard_only", undefined, undefined],
  [undefined, clientOf("priority"), "priority"],
  [null, clientOf("flex"), "flex"],
  ["priority", clientOf(), undefined],
  ["priority", clientOf("flex"), "flex"],
  ["default", clientOf("priority"), undefined],
])("service_tier %j of the client %j is the tier %j", (tier, client, expected) => {
  const plan = planOf({ request: withTier(tier), client });
  expect([plan.request.tier, plan.request.owner, plan.request.model]).toEqual([expected, client?.owner, "own"]);
});

test("a response in the background is generated as a stream, whatever its client gets", () => {
  const asked = { ...request, stream: false };
  expect(planOf({ request: asked }).sender).toBe("whole");
  expect(planOf({ request }).sender).toBe("stream");
  const plan = planOf({ request: asked, inBackground: true });
  expect([plan.sender, plan.request.stream]).toEqual(["background", true]);
});

test.each<[ModelInfo["prewarms"], "cache" | "state", boolean]>([
  ["local", "cache", true],
  ["local", "state", true],
  ["upstream", "cache", true],
  ["upstream", "state", false],
  [undefined, "cache", false],
])("a model that prewarms as %j is asked for a request that prepares the %s: %s", (prewarms, preparesOnly, asked) => {
  expect(planOf({ read: { preparesOnly } }, { info: { ...(prewarms && { prewarms }) } }).asksModel).toBe(asked);
});

test("a request is forwarded to a server of the same API, and one of Responses has lanes", () => {
  expect(planOf({}, { from: { forwards: ["chat"] } })).toMatchObject({ isForwarded: true, hasLanes: false });
  expect(planOf({}, { from: { forwards: ["responses"] } })).toMatchObject({ isForwarded: false, hasLanes: true });
});

test("loops of several choices are not detected", () => {
  const from = { guardsLoops: true };
  expect([planOf({}, { from }), planOf({ request: { ...request, n: 2 } }, { from })]).toMatchObject([
    { detectsLoops: true },
    { detectsLoops: false },
  ]);
});
