import { resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { sdks } from "./compare.ts";
import { nameReasons } from "./name-reasons.ts";
import { means, nameKinds, namesOf, readSource, treatmentOfName } from "./names.ts";

const source = readSource();

// Endpoints, headers, betas, models and errors of the vendors were found by users: nothing listed them.
describe.each(Object.entries(sdks))("every endpoint, header, beta, model and error of %s", (sdk, packages) => {
  const all = packages.flatMap((name) => namesOf(sdk, resolve("node_modules", name)));

  test("is in Truewire's source, or listed with a reason", () => {
    const unknown = all.filter((one) => treatmentOfName(sdk, one, source) === undefined);
    expect(unknown.map(({ kind, name }) => `${kind} ${name}`)).toEqual([]);
  });

  test("is found: a kind without names is one that the SDK no longer writes as it did", () => {
    const none =
      {
        openai: ["error type"],
        "@anthropic-ai/sdk": ["event"],
        ollama: nameKinds.filter((kind) => kind !== "endpoint"),
      }[sdk] ?? [];
    expect(nameKinds.filter((kind) => !all.some((one) => one.kind === kind))).toEqual(none);
    expect(all.length).toBeGreaterThan(5);
  });

  test("that is listed is one of them", () => {
    for (const kind of nameKinds) {
      const listed = (nameReasons[sdk]?.[kind] ?? []).flatMap(({ names }) => names);
      const ofKind = all.filter((one) => one.kind === kind);
      expect([kind, listed.filter((each) => !ofKind.some((one) => means(each, one)))]).toEqual([kind, []]);
    }
  });
});

test("what is served is known from the routes", () => {
  const treatment = (name: string): string | undefined =>
    treatmentOfName("openai", { kind: "endpoint", name, about: "" }, source);
  expect(treatment("POST /responses/{id}/cancel")).toBe("served");
  expect(treatment("PUT /responses")).toBeUndefined();
  expect(treatment("GET /inventions")).toBeUndefined();
});

test("an error code has its class and its doc comment", () => {
  const names = namesOf("@anthropic-ai/sdk", resolve("node_modules/@anthropic-ai/sdk"));
  expect(names.find(({ name }) => name === "contract_spend_limit_reached")?.about).toBe(
    "ContractSpendLimitReachedError (ErrorsRateLimitError) – The organization has reached the spend limit of its contract.",
  );
});
