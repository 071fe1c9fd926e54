import * as z from "zod";
import { ConfigError } from "./config-error.ts";
import { wireSchema } from "./answer-schema.ts";
import { engineSchema, modelSchema, programSchema } from "./model-schema.ts";
import type { ModelEntry } from "./model-schema.ts";
import { hostedProgramSchema, hostedToolsSchema } from "./hosted-tools-schema.ts";
import { pricesSchema } from "./prices-schema.ts";
import { keysSchema } from "./keys-schema.ts";
import { hookModuleSchema, hookSchema } from "./hook-schema.ts";
import { routesSchema } from "./routes-schema.ts";
import { problemsOf, expectation, expected, flag, integer, listShape, oneOf, settings, text } from "./shapes.ts";
import type { Parsed, Written } from "./shapes.ts";
import { modelOfTarget } from "./target.ts";
import { bytes, duration, size, age } from "./units.ts";

const storePlaceText = "memory, a folder, or a URL such as redis://localhost:6379";

/** Another scheme is a mistake, not a folder. */
const storePlace = text(storePlaceText).refine((at) => !at.includes("://") || /^rediss?:\/\//.test(at), {
  error: `expected ${storePlaceText}`,
});

const storeMembers = settings(
  {
    at: storePlace.default("memory").describe("memory, a folder, or redis://HOST:PORT (default memory)"),
    maxCount: integer(0).default(100_000).describe("The most responses that memory or a folder keeps (default 100000)"),
    maxSize: bytes.default(256 * 1024 ** 2).describe("The most bytes that memory or a folder keeps (default 256MiB)"),
    maxAge: age.default(30 * 86_400_000).describe("How long a response is kept (default 30d)"),
  },
  `${storePlaceText}, or a mapping such as { at: ./responses, maxAge: 7d }`,
);

/** A text is the place alone. */
const storeSchema = z
  .union([storePlace.transform((at) => storeMembers.parse({ at })), storeMembers], {
    error: expected(`${storePlaceText}, or a mapping such as { at: ./responses, maxAge: 7d }`),
  })
  .default(storeMembers.parse({}))
  .describe("Where responses are kept for clients that refer to them: memory, a folder or redis://HOST:PORT");

const sessionsSchema = settings(
  {
    memory: flag()
      .default(true)
      .describe("Keep what other servers demand back with the next turn and clients do not return (default true)"),
    maxCount: integer(0)
      .default(100_000)
      .describe("The most entries: one for each turn, and one for each of its calls (default 100000)"),
    maxSize: size("64MiB", "The most bytes that turns take"),
    maxTurn: size("1MiB", "The largest turn; a larger one is not kept"),
    maxAge: age.default(7 * 86_400_000).describe("How long a turn is kept (default 7d)"),
  },
  "a mapping such as { memory: false }",
);

const filesSchema = settings(
  {
    maxCount: integer(0)
      .default(10_000)
      .describe("The most files that memory or a folder keeps; 0: no files and no batches (default 10000)"),
    maxSize: size("256MiB", "The most bytes that files take in memory or a folder"),
    maxAge: age.default(30 * 86_400_000).describe("How long a file is kept (default 30d)"),
  },
  "a mapping such as { maxSize: 1GiB }",
);

/** Checks a configuration given as an object. Throws `ConfigError` with every problem that it has. */
export function parseConfig(value: TruewireConfig): Config {
  const result = server.safeParse(withTargets(value), { error: expectation });
  if (!result.success) throw new ConfigError(result.error.issues.flatMap(problemsOf));
  checkAdminKey(result.data);
  if (result.data.managedKeys && result.data.adminKey.length === 0)
    throw new ConfigError([
      { path: ["managedKeys"], message: "needs an admin key (adminKey), which creates the keys" },
    ]);
  checkCredentials(result.data);
  checkShared(result.data);
  const { tlsCert, tlsKey } = result.data;
  if ((tlsCert === undefined) === (tlsKey === undefined)) return result.data;
  const [given, missing] = tlsKey === undefined ? ["tlsCert", "tlsKey"] : ["tlsKey", "tlsCert"];
  throw new ConfigError([{ path: [given], message: `expected ${missing} next to it, a PEM file` }]);
}

/** A key that opens this server must not go to another one. */
function checkCredentials({ models, apiKey, keys, keysFile, managedKeys }: Config): void {
  const own = { apiKey: apiKey.length > 0, keys: keys.length > 0, keysFile: keysFile !== undefined, managedKeys };
  const [setting] = Object.entries(own).find(([, isSet]) => isSet) ?? [];
  const problems = models.flatMap((model, at) => {
    if (model.kind !== "upstream") return [];
    if (model.auth && (model.key !== undefined || (model.passKey ?? false) !== false)) {
      const message = "signs requests in place of a key, and there is one (key, passKey): remove one of them";
      return [{ path: ["models", at, "auth"], message }];
    }
    if (model.passKey === undefined || model.passKey === false) return [];
    const message =
      model.key !== undefined
        ? "sends the client's key, and the upstream has a key of its own (key): remove one of them"
        : setting !== undefined &&
          `sends the client's key to the upstream, and with ${setting} that is a key of this server: remove one of them`;
    return message === false ? [] : [{ path: ["models", at, "passKey"], message }];
  });
  if (problems.length > 0) throw new ConfigError(problems);
}

/** Instances share a credential through a store that outlives them. */
function checkShared({ models, store }: Config): void {
  if (store.at !== "memory") return;
  const problems = models.flatMap((model, at) => {
    if (model.kind !== "upstream" || model.key === undefined || typeof model.key === "string") return [];
    const isShared = [model.key].flat().some((key) => "command" in key && key.share !== undefined);
    const message =
      "has a share, and the store is in the memory of each instance. Set store: redis://HOST:PORT, or remove share";
    return isShared ? [{ path: ["models", at, "key"], message }] : [];
  });
  if (problems.length > 0) throw new ConfigError(problems);
}

/** Keys that use models may not load and unload them. */
function checkAdminKey({ adminKey, apiKey }: Config): void {
  if (!adminKey.some((key) => apiKey.includes(key))) return;
  throw new ConfigError([
    { path: ["adminKey"], message: "is a key of clients (apiKey), too; expected one of its own" },
  ]);
}

/**
 * The JSON schema of `truewire.yaml`, for editors. `inCode`: that of an object in code, which may have engines and functions; `typeInCode` is
 * their type.
 */
export function configJsonSchema({ inCode = false } = {}): Record<string, unknown> {
  const typesInCode = new Map<unknown, string>([
    [programSchema, "string | Program | object"],
    [hostedProgramSchema, "string | HostedProgram"],
    [hookModuleSchema, "string | Hook"],
    [engineSchema, "Engine"],
  ]);
  const schema = z.toJSONSchema(server, {
    io: "input",
    unrepresentable: "any",
    override: ({ zodSchema, jsonSchema }) => {
      const of: unknown = zodSchema;
      const typeInCode = typesInCode.get(of);
      if (inCode) return void (typeInCode !== undefined && Object.assign(jsonSchema, { typeInCode }));
      // In a file, a program is a path, an engine cannot be, and a target's text names a model.
      if (typeInCode !== undefined) Object.assign(jsonSchema, { type: "string" });
      if (of !== modelSchema) return;
      const kinds = jsonSchema.oneOf?.filter((kind) => !("engine" in (kind.properties ?? {})));
      delete jsonSchema.oneOf;
      jsonSchema.anyOf = [{ type: "string", description: "A target of `truewire serve`" }, ...(kinds ?? [])];
    },
  });
  return { ...schema, title: "truewire.yaml" } as Record<string, unknown>;
}

function list(
  what: string,
  description: string,
): z.ZodPrefault<z.ZodType<readonly string[], string | readonly string[]>> {
  const texts: z.ZodType<readonly string[], string | readonly string[]> = z
    .union([text(what), z.array(text(what))], { error: expected(`${what}, or a list of them`) })
    .transform((value) => (typeof value === "string" ? [value] : value));
  return texts.prefault([]).describe(description);
}

const redis = "a URL such as redis://localhost:6379";

const sessionKeyText = "a secret of at least 32 characters, such as ${TRUEWIRE_SESSION_KEY} (openssl rand -hex 32)";
const sessionKey = text(sessionKeyText).min(32, { error: `expected ${sessionKeyText}` });

const server = settings(
  {
    host: text("an address, such as 127.0.0.1")
      .default("127.0.0.1")
      .describe("The address to listen on (default 127.0.0.1)"),
    port: integer(0, 65_535).default(8080).describe("The port to listen on; 0 takes any free port (default 8080)"),
    workers: integer(1, 1024)
      .default(1)
      .describe("Independent processes that share one port; more than one need Redis, and upstreams only (default 1)"),
    tlsCert: text("a PEM file, such as cert.pem")
      .optional()
      .describe("The server's certificate, with those between it and its authority; HTTPS in place of HTTP"),
    tlsKey: text("a PEM file, such as key.pem").optional().describe("The certificate's private key"),
    apiKey: list("a key, such as ${TRUEWIRE_KEY}", "Keys that clients may use (default: no key is needed)"),
    keys: keysSchema.default([]).describe("Keys by their hashes, with names and limits"),
    keysFile: text("a file, such as keys.yaml").optional().describe("A file with a list of further keys"),
    managedKeys: flag()
      .default(false)
      .describe(
        "Keys may be created and revoked while the server runs (/admin/keys); they are kept where the store is (default false)",
      ),
    prices: pricesSchema
      .default({})
      .describe("What models cost in US dollars, by the names that clients use; * matches any text"),
    pricesFile: text("a file, such as model_prices_and_context_window.json")
      .optional()
      .describe("A file with prices in the form of LiteLLM's list, by the servers' own names of models"),
    routes: routesSchema
      .default([])
      .describe("Rules that give requests to another model than the one that they name; the first that fits decides"),
    hook: hookSchema
      .optional()
      .describe(
        "A module of your own that sees requests before they are sent and answers while they stream: it may change or refuse them",
      ),
    profilesFile: text("a file, such as truewire.profiles.json")
      .optional()
      .describe("What was learned about upstreams (default: truewire.profiles.json next to the configuration file)"),
    sharedLimits: text(redis)
      .refine((at) => /^rediss?:\/\//.test(at), { error: expected(redis) })
      .optional()
      .describe("Redis or Valkey in which instances count the limits of keys together (default: each for itself)"),
    corsOrigin: list(
      "an origin, such as https://app.example.com",
      "Origins of the web pages that may call, or * (default: pages from this machine)",
    ),
    wire: wireSchema.default("lean"),
    hold: duration("10s", "How long the status of a stream waits for the first event"),
    keepAlive: duration(
      "15s",
      "After this time without an event, a comment is sent, so that no proxy closes the stream",
    ),
    readerPatience: duration("15s", "How long the reader of a stream may take nothing while others wait for its slot"),
    resumeStreams: duration(
      "5m",
      "The maximum time that a stream continues after its connection is lost, if its client asks for that with X-Truewire-Resume; 0s: not at all",
    ),
    grace: duration("10s", "How long running answers may take to finish when the server stops"),
    bodyLimit: size("32MiB", "The largest request body"),
    bodyBudget: bytes
      .optional()
      .describe("What all request bodies may take together, in each process (default: a quarter of the heap's limit)"),
    headerTimeout: duration("20s", "Time limit for the headers of a request"),
    requestTimeout: duration("5m", "Time limit for a whole request to arrive"),
    idleTimeout: duration("75s", "Time limit for a connection without a request"),
    logLevel: oneOf(["debug", "info", "warn", "error", "silent"]).default("info"),
    logFormat: oneOf(["json", "pretty"])
      .optional()
      .describe("The form of the log's lines (default: pretty on a terminal, else json)"),
    logStream: text("a file, such as events.log")
      .optional()
      .describe("A file to which every streamed event is appended"),
    metrics: oneOf(["on", "open", "off"])
      .optional()
      .describe("Numbers for Prometheus at /metrics: on, open (without a key) or off (default on; off for a handler)"),
    metricsKey: list("a key, such as ${METRICS_KEY}", "Keys for the numbers alone; then no other key reads them"),
    store: storeSchema,
    sessions: sessionsSchema
      .default(sessionsSchema.parse({}))
      .describe("What is kept of an answer for the next request of its session, where the client does not return it"),
    files: filesSchema
      .default(filesSchema.parse({}))
      .describe("The files that clients upload, and their batches, which are kept where the store is"),
    batchConcurrency: integer(1, 1024)
      .default(8)
      .describe("The most lines of one client's batches that run at a time, in each process (default 8)"),
    sessionKey: sessionKey
      .optional()
      .describe(
        "A secret that proves values which clients return to be this installation's (default: a random one, kept in the store or next to profilesFile)",
      ),
    memory: bytes.optional().describe("What loaded local models may take together, such as 12GiB (default: no limit)"),
    loadWait: duration("5m", "How long a request may wait until its model fits into memory before it is refused"),
    adminKey: list(
      "a key, such as ${TRUEWIRE_ADMIN_KEY}",
      "Keys for the paths under /admin (default: none, and then only this machine may use them)",
    ),
    inspect: flag()
      .optional()
      .describe(
        "Keep the last requests in memory, for the page's Inspect (default: on a server for this machine without keys)",
      ),
    inspectSize: size("32MiB", "What these requests may take in memory"),
    hostedTools: hostedToolsSchema.describe(
      "What runs the tools that an API's vendor runs in its own service: a web search, MCP servers (default: nothing)",
    ),
    models: listShape(modelSchema, "a list such as [model.gguf, http://localhost:11434/v1]")
      .default([])
      .describe("What to serve"),
  },
  "a mapping such as { port: 8080, models: [model.gguf] }",
);

/**
 * A configuration, as `truewire.yaml` holds it and as an object in code. Every member has the name of the command line's option
 * (`--cors-origin` is `corsOrigin`). Times are seconds, or texts such as `500ms`, `10s`, `2m`; sizes are bytes, or texts such as `32MiB`. A
 * model may be a target as on the command line: `name=model.gguf`, `https://…`, `./program.ts`.
 */
export type TruewireConfig = Omit<Written<typeof server>, "models"> & {
  readonly models?: readonly (string | ModelEntry)[] | undefined;
};

/** A valid configuration: times in milliseconds, sizes in bytes, defaults filled in. */
export type Config = Parsed<typeof server>;

/** Whether the server has a setting of this name. */
export function isServerSetting(name: string): boolean {
  return name in server.shape;
}

function withTargets(value: TruewireConfig): unknown {
  if (typeof value !== "object" || value === null || !Array.isArray(value.models)) return value;
  const models = value.models as readonly (string | ModelEntry)[];
  return { ...value, models: models.map((entry) => (typeof entry === "string" ? modelOfTarget(entry) : entry)) };
}
