import * as z from "zod";
import type { HostedProgram } from "../../wire/core/hosted-program.ts";
import { ConfigError, type ConfigProblem } from "./config-error.ts";
import { anyText, decimal, expected, flag, integer, listShape, mappingOf, oneOf, settings, text } from "./shapes.ts";
import type { Parsed, Written } from "./shapes.ts";
import { bytes, time } from "./units.ts";

const limits = {
  timeout: time
    .refine((ms) => ms > 0, { error: expected("a time of more than 0, such as 30s") })
    .optional()
    .describe("Time limit of one call; then it ends with an error, and the answer continues (default 30s)"),
  maxCalls: integer(1).optional().describe("The most calls in one answer, whatever the client allows (default 20)"),
  maxOutput: bytes.optional().describe("The longest result, in characters; longer ones are cut (default 100KiB)"),
};

const domainList = (description: string): z.ZodOptional<z.ZodArray<z.ZodString>> =>
  listShape(text("a domain, such as example.com"), "a list such as [example.com, docs.example.org/guide]")
    .optional()
    .describe(description);
const domains = {
  allowedDomains: domainList("The only domains, with their subdomains (default: all)"),
  blockedDomains: domainList("Domains that are left out, with their subdomains (default: none)"),
};

const webUrl = (what: string): z.ZodURL => z.url({ protocol: /^https?$/, error: expected(what) });

/** A program is a path in a file; in code, it may be the function itself. */
export const hostedProgramSchema: z.ZodType<string | HostedProgram, string | HostedProgram> = z.custom<
  string | HostedProgram
>((value) => (typeof value === "string" && value !== "") || typeof value === "function", {
  error: expected("a file such as ./search.ts; in code also a function"),
});

const searchText =
  "the URL of a SearXNG such as http://127.0.0.1:8888, brave, tavily, a file such as ./search.ts, or a mapping such as { engine: brave, key: ${BRAVE_API_KEY} }";
const webSearchMembers = settings(
  {
    engine: oneOf(["searxng", "brave", "tavily"]).optional().describe("The search engine (default searxng)"),
    url: webUrl("a URL such as http://127.0.0.1:8888")
      .optional()
      .describe("Where it is: needed for searxng, whose settings must have json in search.formats"),
    key: text("a key, such as ${BRAVE_API_KEY}").optional().describe("The key of brave or tavily"),
    program: hostedProgramSchema.optional().describe("A module of your own that searches, in place of an engine"),
    maxResults: integer(1, 50)
      .optional()
      .describe("The most results of a search (default: 5, 8 or 15, by the client's search_context_size)"),
    ...domains,
    ...limits,
  },
  searchText,
);

export type WebSearchConfig = Parsed<typeof webSearchMembers>;
type WebSearchOptions = Written<typeof webSearchMembers>;

/** A target as on the command line: a URL of SearXNG, the name of an engine, or a program. */
function searchOf(target: string): WebSearchOptions {
  if (target === "brave" || target === "tavily") return { engine: target };
  return isProgram(target) ? { program: target } : { engine: "searxng", url: target };
}

function isProgram(target: string): boolean {
  return !/^https?:/i.test(target) && /\.[cm]?[jt]s$/i.test(target);
}

const webSearchSchema: z.ZodType<WebSearchConfig, string | WebSearchOptions> = z.union(
  [text(searchText).transform(searchOf).pipe(webSearchMembers), webSearchMembers],
  {
    error: expected(searchText),
  },
);

const fetchText = "true, or a mapping such as { blockedDomains: [example.com] }";
const webFetchMembers = settings(
  {
    privateHosts: listShape(text("a host, such as wiki.internal"), "a list such as [wiki.internal, 10.0.0.5]")
      .default([])
      .describe("Hosts that may have addresses of this machine or of private networks (default: none)"),
    anyUrl: flag()
      .default(false)
      .describe(
        "Fetch URLs that are not in the conversation, too: the model may send what it knows in one (default false)",
      ),
    maxSize: bytes.optional().describe("The largest page or document (default 10MiB)"),
    ...domains,
    ...limits,
  },
  fetchText,
);
export type WebFetchConfig = Parsed<typeof webFetchMembers>;

const webFetchSchema = z.union(
  [z.boolean().transform((isOn) => (isOn ? webFetchMembers.parse({}) : undefined)), webFetchMembers],
  {
    error: expected(fetchText),
  },
);

const mcpText =
  "a URL such as https://mcp.example.com/mcp, a file such as ./server.js, a command such as npx -y some-mcp-server, or a mapping such as { command: node, args: [server.js] }";
const mcpMembers = settings(
  {
    command: text("a command, such as node")
      .optional()
      .describe("The program that is started, and started again when it ends"),
    args: listShape(anyText("an argument, such as server.js"), "a list such as [server.js]").default([]),
    env: mappingOf(anyText("the value of a variable"), "a mapping such as { TOKEN: ${TOKEN} }")
      .default({})
      .describe("Variables of its environment, which has few others: PATH, HOME, USER, SHELL and TERM"),
    folder: text("a folder, such as /srv/data").optional().describe("Its working folder (default: this one)"),
    url: webUrl("a URL such as https://mcp.example.com/mcp").optional().describe("A server over Streamable HTTP"),
    headers: mappingOf(
      anyText("a header's value, such as Bearer ${TOKEN}"),
      "a mapping such as { authorization: Bearer … }",
    )
      .default({})
      .describe("Headers of requests to the URL; they win over those of clients"),
    connector: text("the id of a connector, such as connector_dropbox")
      .optional()
      .describe("The connector_id of clients for which this server stands"),
    functions: listShape(text("the name of a function"), "a list such as [search, read]")
      .optional()
      .describe("The functions that clients may use (default: all)"),
    ...limits,
  },
  mcpText,
);

export type McpServerConfig = Parsed<typeof mcpMembers>;
type McpServerOptions = Written<typeof mcpMembers>;

/** A target as on the command line: a URL, a file for Node, or a command whose arguments are separated by spaces. */
function mcpOf(target: string): McpServerOptions {
  if (/^https?:\/\//i.test(target)) return { url: target };
  if (/^\S+\.[cm]?[jt]s$/i.test(target)) return { command: "node", args: [target] };
  const [command = "", ...args] = target.split(" ").filter((part) => part !== "");
  return { command, args };
}

const mcpSchema: z.ZodType<McpServerConfig, string | McpServerOptions> = z.union(
  [text(mcpText).transform(mcpOf).pipe(mcpMembers), mcpMembers],
  { error: expected(mcpText) },
);

const programText = "a file such as ./run.ts, or a mapping such as { program: ./run.ts, timeout: 2m }";
const programMembers = settings({ program: hostedProgramSchema.optional(), ...limits }, programText);
/** `checkHostedTools` requires a program. */
export type HostedProgramConfig = Parsed<typeof programMembers>;

const programEntry: z.ZodType<HostedProgramConfig, string | HostedProgram | Written<typeof programMembers>> = z.union(
  [hostedProgramSchema.transform((program) => programMembers.parse({ program })), programMembers],
  { error: expected(programText) },
);

/** Names that clients use, and that metrics and keys have. */
const nameError = "expected a name of letters, digits, - and _, such as docs";
const named = <Read, Given>(
  value: z.ZodType<Read, Given>,
  what: string,
): z.ZodType<Readonly<Record<string, Read>>, Readonly<Record<string, Given>>> =>
  mappingOf(value, what).superRefine((entries, context) => {
    for (const name of Object.keys(entries))
      if (!/^[\w-]{1,64}$/.test(name)) context.addIssue({ code: "custom", path: [name], message: nameError });
  });

/** What runs the tools that an API's vendor runs in its own service: nothing, unless it is configured. */
const hostedTools = settings(
  {
    webSearch: webSearchSchema.optional().describe("What searches the web: SearXNG, Brave, Tavily, or a program"),
    webFetch: webFetchSchema.optional().describe("Whether pages are fetched, from the public internet"),
    mcp: named(mcpSchema, "a mapping such as { docs: https://mcp.example.com/mcp }")
      .default({})
      .describe("MCP servers by the names that clients use (server_label)"),
    programs: named(programEntry, "a mapping such as { code_interpreter: ./run.ts }")
      .default({})
      .describe("Modules of your own by the type of tool that they run: code_interpreter, file_search, or any other"),
    maxCost: decimal(0)
      .optional()
      .describe(
        "The most US dollars that one answer with hosted tools may cost: then no further call runs, and the answer ends (default: no limit). Needs a price of the model (prices)",
      ),
  },
  "a mapping such as { webSearch: http://127.0.0.1:8888 }",
);

/** What runs hosted tools (docs/hosted-tools.md). */
export type HostedToolsOptions = Written<typeof hostedTools>;
/** The same, with its defaults; absent: nothing runs them. */
export type HostedToolsConfig = Parsed<typeof hostedTools>;

export const hostedToolsSchema: z.ZodPrefault<typeof hostedTools> = hostedTools.prefault({});

/** Throws `ConfigError` for what is missing in mappings, or excludes another member: what no schema of a single setting says. */
export function checkHostedTools({ webSearch, mcp, programs }: HostedToolsConfig): void {
  const problems: ConfigProblem[] = [];
  const add = (path: readonly string[], message: string): void =>
    void problems.push({ path: ["hostedTools", ...path], message });
  if (webSearch) {
    const { engine = "searxng", url, key, program } = webSearch;
    if (program !== undefined) {
      if (webSearch.engine !== undefined || url !== undefined)
        add(["webSearch", "program"], "excludes engine and url; expected one of them");
    } else if (engine === "searxng" && url === undefined)
      add(["webSearch", "url"], `is missing; expected ${searchText}`);
    else if (engine !== "searxng" && key === undefined)
      add(["webSearch", "key"], `is missing; expected a key of ${engine}, such as \${${engine.toUpperCase()}_API_KEY}`);
  }
  for (const [name, { command, url }] of Object.entries(mcp))
    if ((command === undefined) === (url === undefined))
      add(["mcp", name], `expected either a command or a url: ${mcpText}`);
  for (const [type, { program }] of Object.entries(programs))
    if (program === undefined) add(["programs", type, "program"], `is missing; expected ${programText}`);
  if (problems.length > 0) throw new ConfigError(problems);
}

/** Returns the options with their paths relative to a folder, in which programs of MCP servers run. `path`: makes a path absolute. */
export function withHostedPathsFrom(options: HostedToolsOptions, path: (text: string) => string): HostedToolsOptions {
  const program = <P>(given: P): P | string => (typeof given === "string" ? path(given) : given);
  const { webSearch, mcp, programs } = options;
  const search = typeof webSearch === "string" ? searchOf(webSearch) : webSearch;
  return {
    ...options,
    ...(search && {
      webSearch: { ...search, ...(search.program !== undefined && { program: program(search.program) }) },
    }),
    ...(mcp && {
      mcp: mapped(mcp, (entry) => {
        const server = typeof entry === "string" ? mcpOf(entry) : entry;
        return server.command === undefined ? server : { ...server, folder: path(server.folder ?? ".") };
      }),
    }),
    ...(programs && {
      programs: mapped(programs, (entry) =>
        typeof entry === "object" && entry.program !== undefined
          ? { ...entry, program: program(entry.program) }
          : program(entry),
      ),
    }),
  };
}

function mapped<T, R>(entries: Readonly<Record<string, T>>, map: (value: T) => R): Readonly<Record<string, R>> {
  return Object.fromEntries(Object.entries(entries).map(([name, value]) => [name, map(value)]));
}
