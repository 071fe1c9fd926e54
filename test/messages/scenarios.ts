/** What a source is to say: asked for by the user's message. */
export type Scenario = (typeof scenarios)[number];

export const scenarios = ["text", "reasoning", "calls", "cut", "error"] as const;

export function limitOf(scenario: Scenario): number {
  return scenario === "cut" ? 3 : 100;
}

/** What a client asks; a text as well as a turn of a conversation. */
export function promptOf(scenario: Scenario, kind: "turn" | "text"): string {
  const length = scenario === "error" ? 2000 : 0;
  return " x".repeat(length) + (kind === "turn" ? ` #${scenario}` : ` <|script:${scenario}|>`);
}

/** The scenario that a content names; the result of a tool names none and is answered by "text". */
export function asked(content: unknown): Scenario {
  const text = typeof content === "string" ? content : (JSON.stringify(content) ?? "");
  return scenarios.find((name) => text.includes(`#${name}`) || text.includes(`script:${name}`)) ?? "text";
}
