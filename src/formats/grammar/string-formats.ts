import type { Expression } from "./expression.ts";
import { regexExpression } from "./regex-to-gbnf.ts";

const hex4 = "[0-9a-fA-F]{1,4}";
const octet = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
const ipv4 = `(${octet}\\.){3}${octet}`;
// Six labels of 40 stay below the 253 characters of a host name.
const label = "[A-Za-z0-9]([A-Za-z0-9-]{0,38}[A-Za-z0-9])?";
const host = `${label}(\\.${label}){0,5}`;

const leapYear = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)";
const date =
  "([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))" +
  `|${leapYear}-02-29)`;
const clock = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?";
const offset = "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])";

const unreserved = "[A-Za-z0-9._~!$&'()*+,;=:@-]";
const escapedByte = "%[0-9A-Fa-f]{2}";
const pathCharacter = `(${unreserved}|${escapedByte})`;
const path = `(/${pathCharacter}{0,256}){0,64}`;
const query = `(\\?(${pathCharacter}|[/?]){0,2048})?(#(${pathCharacter}|[/?]){0,256})?`;
const scheme = "[A-Za-z][A-Za-z0-9+.-]{0,15}";

const count = "[0-9]{1,6}";

/** One to three numbers with units, largest first. */
function descending(...units: readonly [string, string, string]): string {
  const [a, b, c] = units.map((unit) => `${count}${unit}`);
  return `(${a}(${b})?(${c})?|${b}(${c})?|${c})`;
}

/**
 * The formats of JSON Schema that a grammar writes, as patterns of the whole string. Each writes only what ajv-formats accepts, and
 * of that what is common: RFC 3339 dates and times with an upper-case `T` and `Z` and without leap seconds, uuids without `urn:`.
 */
const patterns: Readonly<Record<string, string>> = {
  date,
  time: `${clock}${offset}`,
  "date-time": `${date}T${clock}${offset}`,
  duration: `P(${count}W|${descending("Y", "M", "D")}(T${descending("H", "M", "S")})?|T${descending("H", "M", "S")})`,
  uuid: "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
  email: `[A-Za-z0-9!#$%&'*+/=?^_\`{|}~-]{1,32}(\\.[A-Za-z0-9!#$%&'*+/=?^_\`{|}~-]{1,32}){0,4}@(${label}\\.){1,4}${label}`,
  hostname: host,
  ipv4,
  ipv6: [
    `(${hex4}:){7}${hex4}`,
    ...[1, 2, 3, 4, 5, 6].map((n) => `(${hex4}:){1,${n}}(:${hex4}){1,${7 - n}}`),
    `::(${hex4}:){0,6}${hex4}`,
    `(${hex4}:){1,7}:`,
    "::",
    `::(ffff:)?${ipv4}`,
  ].join("|"),
  byte: "([A-Za-z0-9+/]{4}){0,4096}([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?",
  url: `https?://([a-z0-9]{1,30}(-[a-z0-9]{1,30}){0,2}\\.){1,4}[a-z]{2,20}(:[0-9]{2,5})?(/${pathCharacter}{0,256}${path}${query})?`,
  uri: `${scheme}:(//${host}(:[0-9]{1,5})?${path}|${pathCharacter}{1,256}${path})${query}`,
  "uri-reference": `(${scheme}:)?(//${host}(:[0-9]{1,5})?)?${path}${query}`,
  "iso-time": `${clock}${offset}`,
  "iso-date-time": `${date}T${clock}${offset}`,
  "json-pointer": "(/([^~/]|~[01]){0,64}){0,32}",
};

const cache = new Map<string, Expression>();

/** The strings of a format; null for one that is not known. */
export function formatExpression(name: string): Expression | null {
  const pattern = Object.hasOwn(patterns, name) ? patterns[name] : undefined;
  if (pattern === undefined) return null;
  let expression = cache.get(name);
  if (expression === undefined) {
    expression = regexExpression(`^(${pattern})$`, "whole");
    cache.set(name, expression);
  }
  return expression;
}
