import type { Probe } from "./probe.ts";

/** What the probes of every API ask. */
export const prompts = {
  hello: "Say hello in one short sentence.",
  count: "Count from 1 to 200, one number a line.",
  unicode: "Repeat exactly: naïve 日本語 🦙 – “done”",
  weather: "What is the weather in Paris? Use the tool.",
  twoCities: "What is the weather in Paris, and in Rome? Call the tool for both cities at once.",
  oneCity: "What is the weather in Paris, and in Rome?",
  person: "A person: Ada, 36 years old. Answer in JSON.",
} as const;

/** What a tool answered. */
export const weatherFound = '{"temperature":21,"sky":"clear"}';

/** The schema of a person. */
export const person: Readonly<Record<string, unknown>> = {
  type: "object",
  properties: { name: { type: "string" }, age: { type: "integer" } },
  required: ["name", "age"],
  additionalProperties: false,
};

/** The schema of a tool's one argument, a text. */
export function argumentNamed(name: string): Readonly<Record<string, unknown>> {
  return {
    type: "object",
    properties: { [name]: { type: "string" } },
    required: [name],
    additionalProperties: false,
  };
}

/** One message of a user. */
export function saying(content: unknown): readonly Readonly<Record<string, unknown>>[] {
  return [{ role: "user", content }];
}

type Make<Made> = (id: string, about: string, members: Record<string, unknown>, more?: Partial<Probe>) => Made;

/** Makes the same request twice, not streamed and streamed. */
export function bothWays(make: Make<Probe>): Make<Probe[]> {
  return (id, about, members, more) => [
    make(id, about, members, more),
    make(`${id}/stream`, `${about}, streamed`, { ...members, stream: true }, more),
  ];
}

/**
 * Makes an invalid request, not streamed and streamed: either way it must be refused before anything is sent, and the error names `param`.
 */
export function refused(
  make: Make<Probe[]>,
): (id: string, about: string, param: string | null, members: Record<string, unknown>, status?: number) => Probe[] {
  return (id, about, param, members, status = 400) =>
    make(`wrong/${id}`, about, members, { expects: { refusal: status, param } });
}
