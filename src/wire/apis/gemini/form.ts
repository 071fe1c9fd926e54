import type { JsonValue } from "../json-text.ts";
import { JsonText, jsonText } from "../json-text.ts";
import { type Profile, unbufferedStream } from "../profile.ts";

/** The form of answers in a profile. */
export interface GeminiForm {
  /** A whole answer, and an item of a stream that is a list. */
  whole(value: JsonValue): string;
  /** The data of an event, and a value within it. */
  event(value: JsonValue): string;
  /** What ends an event, and what is between the items of a list. */
  readonly eventEnd: string;
  readonly comma: string;
  /** `usageMetadata` counts by modality, and has the tier. */
  readonly detailedUsage: boolean;
  readonly sseHeaders: Readonly<Record<string, string>>;
  readonly listHeaders: Readonly<Record<string, string>>;
}

const json = "application/json; charset=UTF-8";

/** The bytes of profile `exact` are those of the recordings that `schema.ts` names. */
export const geminiForms: Readonly<Record<Profile["name"], GeminiForm>> = {
  lean: {
    whole: (value) => jsonText(value),
    event: (value) => jsonText(value),
    eventEnd: "\n\n",
    comma: ",\n",
    detailedUsage: false,
    sseHeaders: unbufferedStream,
    listHeaders: { "content-type": json, "x-accel-buffering": "no" },
  },
  exact: {
    whole: (value) => `${jsonText(value, 2)}\n`,
    event: spaced,
    eventEnd: "\r\n\r\n",
    comma: ",\r\n",
    detailedUsage: true,
    sseHeaders: { "content-type": "text/event-stream", "content-disposition": "attachment" },
    listHeaders: { "content-type": json },
  },
};

/** JSON with a space after each colon. */
function spaced(value: JsonValue): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (value instanceof JsonText) return value.text;
  if (Array.isArray(value)) return `[${value.map(spaced).join(",")}]`;
  const members = Object.entries(value).flatMap(([name, member]) =>
    member === undefined ? [] : [`${JSON.stringify(name)}: ${spaced(member as JsonValue)}`],
  );
  return `{${members.join(",")}}`;
}

export const geminiContentType = json;
