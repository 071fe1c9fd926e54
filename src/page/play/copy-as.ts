import type { Parameter } from "./parameter.ts";
import type { ChatBody } from "./request-body.ts";

/** A language that a request can be copied as. */
export type Language = "curl" | "Node" | "Python";

export const languages: readonly Language[] = ["curl", "Node", "Python"];

/** Where a request goes, and what its code has to know. */
export interface CopyTarget {
  /** The API's base URL, without a slash at its end. */
  readonly baseUrl: string;
  /** The server requires a key: the code reads it from `OPENAI_API_KEY`, as OpenAI's libraries do. The key itself is never copied. */
  readonly keyNeeded: boolean;
  /** Distinguishes OpenAI's parameters, which its libraries name, from others. */
  readonly table: readonly Parameter[];
}

/** A program that sends the request and prints the answer as it comes. */
export function copyAs(language: Language, body: ChatBody, target: CopyTarget): string {
  return writers[language](body, target);
}

const writers: Readonly<Record<Language, (body: ChatBody, target: CopyTarget) => string>> = {
  curl: (body, { baseUrl, keyNeeded }) =>
    [
      `curl -N ${baseUrl}/chat/completions \\`,
      ...(keyNeeded ? ['  -H "Authorization: Bearer $OPENAI_API_KEY" \\'] : []),
      "  -H 'Content-Type: application/json' \\",
      `  -d ${shellQuoted(JSON.stringify(body, null, 2))}`,
    ].join("\n"),

  Node: (body, { baseUrl, keyNeeded }) => `import OpenAI from "openai";

const client = new OpenAI({ baseURL: ${JSON.stringify(baseUrl)}, apiKey: ${keyNeeded ? "process.env.OPENAI_API_KEY" : '"none"'} });
const stream = await client.chat.completions.create(${JSON.stringify(body, null, 2)});
for await (const chunk of stream) {
  process.stdout.write(chunk.choices[0]?.delta.content ?? "");
}
`,

  Python: (body, { baseUrl, keyNeeded, table }) => {
    const others = new Set(table.flatMap(({ name, origin }) => (origin === "extension" ? [name] : [])));
    const own = Object.entries(body).filter(([name]) => !others.has(name));
    const extra = Object.entries(body).filter(([name]) => others.has(name));
    const members = own.map(([name, value]) => `    ${name}=${pythonValue(value, "    ")},`);
    if (extra.length > 0) members.push(`    extra_body=${pythonValue(Object.fromEntries(extra), "    ")},`);
    return `${keyNeeded ? "import os\n\n" : ""}from openai import OpenAI

client = OpenAI(base_url=${JSON.stringify(baseUrl)}, api_key=${keyNeeded ? 'os.environ["OPENAI_API_KEY"]' : '"none"'})
stream = client.chat.completions.create(
${members.join("\n")}
)
for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)
`;
  },
};

function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A JSON value as Python writes it. JSON's strings are Python's, but for lone surrogates, which neither can send. */
function pythonValue(value: unknown, indent: string): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const inner = `${indent}    `;
  const isList = Array.isArray(value);
  const items = isList
    ? value.map((item) => pythonValue(item, inner))
    : Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}: ${pythonValue(item, inner)}`);
  const [open, close] = isList ? "[]" : "{}";
  if (items.length === 0) return `${open}${close}`;
  return `${open}\n${items.map((item) => `${inner}${item},\n`).join("")}${indent}${close}`;
}
