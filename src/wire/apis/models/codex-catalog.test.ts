import { expect, test } from "vitest";
import { codexCatalog } from "./models.ts";

const model = { id: "m", created: 1, ownedBy: "truewire", endpoints: ["chat", "completions"] } as const;

// One entry without one of these members spoils the whole list. Source: Codex CLI 0.169.0.
const required = [
  "slug",
  "display_name",
  "supported_reasoning_levels",
  "shell_type",
  "visibility",
  "supported_in_api",
  "priority",
  "support_verbosity",
  "truncation_policy",
  "experimental_supported_tools",
  "base_instructions",
];

test("every entry is complete, also of a model of which little is known", () => {
  const others = [
    { ...model, id: "sees", contextLength: 4096, takesImages: true },
    { ...model, id: "blind", takesImages: false },
  ];
  const entries = codexCatalog([model, ...others]);
  for (const entry of entries) expect(Object.keys(entry)).toEqual(expect.arrayContaining(required));
  expect(entries).toMatchObject([
    { slug: "m", priority: 1, input_modalities: ["text", "image"] },
    { slug: "sees", priority: 2, context_window: 4096, input_modalities: ["text", "image"] },
    { slug: "blind", priority: 3, input_modalities: ["text"] },
  ]);
  expect(entries[0]).not.toHaveProperty("context_window");
});

test("a model without conversations is not listed", () => {
  expect(codexCatalog([{ ...model, endpoints: ["embeddings"] }])).toEqual([]);
});
