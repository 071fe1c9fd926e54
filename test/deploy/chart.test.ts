import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Ajv } from "ajv";
import { afterAll, describe, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { builtMain } from "../support/serve.ts";

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly [member: string]: unknown;
}

const folder = mkdtempSync(join(tmpdir(), "truewire-chart-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const hasHelm = spawnSync("helm", ["version", "--short"]).status === 0;
if (!hasHelm) console.log("skipped: helm is not on the PATH");

const manifestsIn = (text: string): Manifest[] =>
  parseAllDocuments(text).flatMap((document) => {
    expect(document.errors).toEqual([]);
    const value = document.toJS() as Manifest | null;
    return value === null ? [] : [value];
  });

type Models = Readonly<Record<string, unknown>>;
const groups: Readonly<Record<string, () => Promise<Models>>> = {
  v1: () => import("kubernetes-models/v1"),
  "apps/v1": () => import("kubernetes-models/apps/v1"),
  "autoscaling/v2": () => import("kubernetes-models/autoscaling/v2"),
  "networking.k8s.io/v1": () => import("kubernetes-models/networking.k8s.io/v1"),
  "policy/v1": () => import("kubernetes-models/policy/v1"),
  "monitoring.coreos.com/v1": () => import("@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1"),
};

/** Throws for a manifest that Kubernetes' OpenAPI schema, or that of a CRD, does not allow. Kinds of other CRDs are not known here: false. */
async function validate(manifest: Manifest): Promise<boolean> {
  const models = await groups[manifest.apiVersion]?.();
  const Model = models?.[manifest.kind] as (new (value: object) => { validate(): void }) | undefined;
  if (!Model) return false;
  new Model(manifest).validate();
  return true;
}

test("a manifest with a value of another type is not allowed", async () => {
  const spec = { replicas: "3", selector: {}, template: {} };
  await expect(validate({ apiVersion: "apps/v1", kind: "Deployment", spec })).rejects.toThrow(
    "replicas must be integer",
  );
});

const helm = (...args: readonly string[]) => spawnSync("helm", args, { encoding: "utf8" });
const everything = {
  autoscaling: { enabled: true },
  serviceMonitor: {
    enabled: true,
    labels: { release: "prometheus" },
    authorization: { name: "truewire", key: "metrics" },
  },
  networkPolicy: {
    enabled: true,
    from: [{ namespaceSelector: { matchLabels: { team: "search" } } }],
    to: [{ podSelector: { matchLabels: { app: "vllm" } } }],
  },
  imagePullSecrets: [{ name: "registry" }],
  env: [{ name: "OTEL_EXPORTER_OTLP_ENDPOINT", value: "http://otel:4318" }],
  nodeSelector: { pool: "gateways" },
  tolerations: [{ key: "gateways", operator: "Exists" }],
  podAnnotations: { note: "x" },
  extraVolumes: [{ name: "hook", configMap: { name: "hook" } }],
  extraVolumeMounts: [{ name: "hook", mountPath: "/etc/hook" }],
};

describe.skipIf(!hasHelm)("the Helm chart, rendered by helm", () => {
  const rendered = (values: object): Manifest[] => {
    const file = join(folder, "values.json");
    writeFileSync(file, JSON.stringify(values));
    const { status, stdout, stderr } = helm("template", "gw", "deploy/chart", "--kube-version", "1.31.0", "-f", file);
    expect([status, stderr]).toEqual([0, ""]);
    return manifestsIn(stdout);
  };
  const ofKind = (manifests: readonly Manifest[], kind: string) => manifests.find((one) => one.kind === kind);

  test("passes helm lint", () => {
    const { status, stdout } = helm("lint", "--strict", "deploy/chart");
    expect([status, stdout]).toEqual([0, expect.stringContaining("0 chart(s) failed") as string]);
  });

  test("has manifests that Kubernetes' schemas allow, with its defaults and with everything on", async () => {
    const [plain, full] = [rendered({}), rendered(everything)];
    for (const manifest of [...plain, ...full])
      expect([manifest.kind, await validate(manifest)]).toEqual([manifest.kind, true]);
    expect(plain.map(({ kind }) => kind).toSorted()).toEqual([
      "ConfigMap",
      "Deployment",
      "PodDisruptionBudget",
      "Service",
    ]);
    expect(full.map(({ kind }) => kind).toSorted()).toEqual([
      "ConfigMap",
      "Deployment",
      "HorizontalPodAutoscaler",
      "NetworkPolicy",
      "PodDisruptionBudget",
      "Service",
      "ServiceMonitor",
    ]);
  });

  test("has a configuration that truewire takes, whose instances share Valkey and let streams end", () => {
    const manifests = rendered({});
    const { data } = ofKind(manifests, "ConfigMap") as unknown as { data: Record<string, string> };
    const configuration = data["truewire.yaml"] ?? "";
    expect(parse(configuration)).toMatchObject({
      host: "0.0.0.0",
      port: 8080,
      grace: "600s",
      store: "redis://valkey:6379",
      sharedLimits: "redis://valkey:6379",
    });
    const file = join(folder, "truewire.yaml");
    writeFileSync(file, configuration);
    const checked = spawnSync(process.execPath, [builtMain, "config", "check", file], {
      encoding: "utf8",
      env: { ...process.env, TRUEWIRE_KEY: "sk-example-0123456789" },
    });
    expect([checked.status, checked.stderr]).toEqual([0, ""]);
    const { spec } = ofKind(manifests, "Deployment") as unknown as {
      spec: { template: { spec: { terminationGracePeriodSeconds: number } } };
    };
    expect(spec.template.spec.terminationGracePeriodSeconds).toBeGreaterThan(610);
    expect(JSON.stringify(manifests)).not.toContain("sk-example");
  });

  test("leaves the number of instances to the autoscaler where that is on, and rolls out a changed configuration", () => {
    const spec = (values: object) =>
      (ofKind(rendered(values), "Deployment") as unknown as { spec: { replicas?: number; template: object } }).spec;
    expect(spec({}).replicas).toBe(3);
    expect(spec(everything).replicas).toBeUndefined();
    const changed = { config: { models: [{ kind: "upstream", url: "http://other/v1" }] } };
    expect(JSON.stringify(spec({}).template)).not.toBe(JSON.stringify(spec(changed).template));
  });

  test.each<[object, string]>([
    [{ replica: 2 }, "replica"],
    [{ replicas: 0 }, "replicas"],
    [{ config: { models: [{}], grace: "5s" } }, "config"],
    [{ secrets: { KEY: "the-secret-itself" } }, "secrets"],
    [{ valkey: "valkey:6379" }, "valkey"],
  ])("refuses the values %j", (values, place) => {
    const file = join(folder, "wrong.json");
    writeFileSync(file, JSON.stringify(values));
    const { status, stderr } = helm("template", "gw", "deploy/chart", "--kube-version", "1.31.0", "-f", file);
    expect(status).not.toBe(0);
    expect(stderr).toContain(place);
  });
});

test("the chart's own values follow their schema, which knows each of them", () => {
  const values = parse(readFileSync("deploy/chart/values.yaml", "utf8")) as Record<string, unknown>;
  const schema = JSON.parse(readFileSync("deploy/chart/values.schema.json", "utf8")) as { properties: object };
  const check = new Ajv({ strict: false }).compile({ ...schema, $schema: undefined });
  expect([check(values), check.errors]).toEqual([true, null]);
  expect(Object.keys(schema.properties).filter((name) => name !== "global")).toEqual(Object.keys(values));
});

/** The manifests of a page: YAML in blocks of `text`, which no other test runs. */
const pages = ["deploy/kubernetes.yaml", "docs/kubernetes.md"];
test.each(pages)("each manifest of %s that has a schema follows it", async (page) => {
  const text = readFileSync(page, "utf8");
  const blocks = page.endsWith(".md")
    ? [...text.matchAll(/^```text\n(apiVersion:[^]*?)^```/gm)].map(([, block = ""]) => block)
    : [text];
  const manifests = blocks.flatMap(manifestsIn);
  const known: string[] = [];
  for (const manifest of manifests) {
    expect([manifest.kind, typeof manifest.apiVersion]).toEqual([expect.any(String), "string"]);
    if (await validate(manifest)) known.push(manifest.kind);
  }
  expect(known).toContain("Deployment");
});
