import type { Format, PlainFormat } from "../../../formats/format.ts";

/** Whether models of this format make calls in a syntax of their own. */
export function hasCalls(format: Format): boolean {
  return format.kind === "routed" || format.calls.length > 0;
}

/** The format that calls are read with where the template knows no tools: one JSON object, behind the model's own reasoning. */
export function genericCalls(format: Format): PlainFormat {
  const { reasoning, strip, drop } = format;
  return {
    kind: "plain",
    id: "generic-json",
    ...(reasoning && { reasoning }),
    ...(strip && { strip }),
    ...(drop && { drop }),
    calls: [
      {
        form: "object",
        bare: "start",
        list: "one",
        name: ["name"],
        arguments: ["arguments", "parameters"],
        argumentsRequired: true,
      },
    ],
  };
}
