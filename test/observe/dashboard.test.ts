import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { createServer } from "../../src/serve/app/create-server.ts";
import { answer, ScriptedEngine } from "../support/scripted-engine.ts";
import { chat, serving } from "../support/transports.ts";
import { readExposition } from "./read-metrics.ts";
import type { Exposition } from "./read-metrics.ts";

// What Grafana needs of a dashboard. Source: Grafana's documentation, "Dashboard JSON model".

const dataSource = z.strictObject({ type: z.literal("prometheus"), uid: z.literal("${datasource}") });

const place = z.strictObject({
  x: z.int().min(0).max(23),
  y: z.int().min(0),
  w: z.int().min(1).max(24),
  h: z.int().min(1),
});

const row = z.strictObject({
  id: z.int().positive(),
  type: z.literal("row"),
  title: z.string().min(1),
  collapsed: z.literal(false),
  gridPos: place,
  panels: z.tuple([]),
});

const panel = z.strictObject({
  id: z.int().positive(),
  type: z.enum(["stat", "timeseries"]),
  title: z.string().min(1),
  description: z.string(),
  datasource: dataSource,
  gridPos: place,
  fieldConfig: z.strictObject({
    defaults: z.looseObject({ unit: z.enum(["reqps", "s", "percentunit", "short", "bytes", "currencyUSD"]) }),
    overrides: z.array(z.unknown()),
  }),
  options: z.looseObject({}),
  targets: z
    .array(
      z.strictObject({
        refId: z.string().regex(/^[A-Z]$/),
        datasource: dataSource,
        expr: z.string().min(1),
        legendFormat: z.string(),
      }),
    )
    .min(1),
});

const variable = z.looseObject({
  name: z.string().regex(/^\w+$/),
  type: z.enum(["datasource", "query"]),
  definition: z.string().optional(),
});

const dashboard = z.looseObject({
  title: z.string().min(1),
  uid: z.string().regex(/^[\w-]{1,40}$/),
  schemaVersion: z.int().min(36),
  time: z.strictObject({ from: z.string(), to: z.string() }),
  templating: z.strictObject({ list: z.array(variable) }),
  annotations: z.strictObject({ list: z.array(z.unknown()) }),
  panels: z.array(z.discriminatedUnion("type", [row, panel])),
});

const source: unknown = JSON.parse(readFileSync("docs/grafana-dashboard.json", "utf8"));
const { panels, templating } = dashboard.parse(source);
const queries = [
  ...panels.flatMap((each) => (each.type === "row" ? [] : each.targets.map(({ expr }) => expr))),
  ...templating.list.flatMap(({ definition }) => (definition === undefined ? [] : [definition])),
];

/** Names of metrics and labels in a query: every word that is no function, keyword, text or time range. */
function wordsOf(query: string): string[] {
  const bare = query.replaceAll(/"[^"]*"/g, "").replaceAll(/\[[^\]]*\]/g, "");
  return [...bare.matchAll(/[a-zA-Z_]\w*(?!\w*\s*\()/g)]
    .map(([word]) => word)
    .filter((word) => !["by", "bool", "sum", "rate", "increase", "histogram_quantile", "label_values"].includes(word));
}

describe("the Grafana dashboard", () => {
  let numbers: Exposition;
  let stop: () => Promise<void>;
  beforeAll(async () => {
    const server = await createServer({
      ...serving(new ScriptedEngine(() => answer(["Hi", " there"]))),
      port: 0,
      logLevel: "silent",
    });
    stop = () => server.close(0);
    await (await fetch(`${server.url}/v1/chat/completions`, chat("hi", { stream: true }))).text();
    numbers = readExposition(await (await fetch(`${server.url}/metrics`)).text());
  });
  afterAll(() => stop());

  /** Of a histogram, its three series. */
  function series(): Map<string, string> {
    const all = new Map<string, string>();
    for (const [name, type] of numbers.types) {
      const names = type === "histogram" ? ["_bucket", "_sum", "_count"].map((end) => name + end) : [name];
      for (const each of names) all.set(each, type);
    }
    return all;
  }

  test("asks only for numbers and labels that there are, and for all numbers of requests", () => {
    const known = series();
    const labels = new Set(["key", "error_type", "repair", "cause", "reason", "fate", "instance", "tool", "outcome"]);
    for (const sample of numbers.samples) for (const label of Object.keys(sample.labels)) labels.add(label);
    const used = new Set<string>();
    for (const query of queries) {
      for (const word of wordsOf(query)) {
        expect(known.has(word) || labels.has(word), `${word} in ${query}`).toBe(true);
        if (known.has(word)) used.add(word.replace(/_(bucket|sum|count)$/, ""));
      }
    }
    const unused = [...numbers.types.keys()].filter((name) => !used.has(name));
    expect(unused).toEqual([
      "process_start_time_seconds",
      "nodejs_eventloop_lag_mean_seconds",
      "nodejs_eventloop_lag_p50_seconds",
    ]);
  });

  test("and the page on watching name every number, with its type, and no other", () => {
    const told = new Map<string, string>();
    for (const line of readFileSync("docs/watching.md", "utf8").split("\n")) {
      const [, names = "", type = ""] = /^\| ((?:`\w+`(?:, )?)+) \| (counter|gauge|histogram) \|/.exec(line) ?? [];
      for (const [, name = ""] of names.matchAll(/`(\w+)`/g)) told.set(name, type);
    }
    expect(Object.fromEntries(told)).toEqual(Object.fromEntries(numbers.types));
  });

  test("asks for the rate of what only grows, and of nothing else", () => {
    const known = series();
    for (const query of queries.filter((each) => !each.startsWith("label_values"))) {
      const bare = query.replaceAll(/"[^"]*"/g, "");
      for (const [, name = ""] of bare.matchAll(/\b((?:gen_ai|truewire|process|nodejs)_\w+)(?=\{|\[|\)| |$)/g)) {
        const type = known.get(name);
        if (type === undefined) continue;
        const isRate = new RegExp(`(rate|increase)\\(${name}[{[]`).test(bare);
        expect(isRate, `${name} (${type}) in ${query}`).toBe(type !== "gauge");
      }
    }
  });

  test("has brackets in pairs, ids of its own, and panels that do not overlap", () => {
    for (const query of queries) {
      const bare = query.replaceAll(/"[^"]*"/g, "");
      for (const [open = "", close = ""] of ["()", "[]", "{}"])
        expect(bare.split(open).length, query).toBe(bare.split(close).length);
    }
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const taken = new Set<string>();
    for (const { gridPos, title } of panels) {
      const { x, y, w, h } = gridPos;
      expect(x + w, title).toBeLessThanOrEqual(24);
      for (let column = x; column < x + w; column++) {
        for (let line = y; line < y + h; line++) {
          expect(taken.has(`${column} ${line}`), `${title} overlaps another panel`).toBe(false);
          taken.add(`${column} ${line}`);
        }
      }
    }
    const variables = new Set(templating.list.map(({ name }) => name));
    for (const [, name = ""] of JSON.stringify(source).matchAll(/\$\{?([a-z]\w*)/g)) expect(variables).toContain(name);
  });
});
