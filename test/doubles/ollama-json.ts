/*
 * How Ollama reads the JSON of a request: into Go's structs, with Go's errors. Unknown members are ignored, null counts as absent, and a
 * member of another type is refused. Source: ollama 0.33.0 api/types.go; Go's encoding/json, UnmarshalTypeError; wk8/go-ordered-map,
 * UnmarshalJSON (its error for anything but an object is that of buger/jsonparser). The words are those of Ollama 0.17.4, compiled with Go
 * 1.26, which was asked on 2026-11-30 (`npm run interop -- doubles ollama`).
 */

/** A request that Ollama refuses while it reads the JSON: 400, with this message. */
export class GoJsonError extends Error {}

type GoType =
  | "string"
  | "bool"
  | "int"
  | "float64"
  | "any"
  /** `[]byte`: base64. */
  | "bytes"
  | "think"
  | "duration"
  /** `map[string]any` */
  | "map"
  /** `PropertyType`: a string or a list of strings. */
  | "names"
  | { readonly list: GoType; readonly go: string }
  /** A map in the order of its keys. */
  | { readonly ordered: GoType }
  /** `own`: it has an `UnmarshalJSON`, whose errors name the struct around it. `package`: default, api. */
  | {
      readonly struct: string;
      readonly own?: true;
      readonly package?: string;
      readonly fields: () => Readonly<Record<string, GoType>>;
    };

const strings: GoType = { list: "string", go: "[]string" };

const property: GoType = {
  struct: "ToolProperty",
  own: true,
  fields: () => ({
    anyOf: { list: property, go: "[]api.ToolProperty" },
    type: "names",
    items: "any",
    description: "string",
    enum: { list: "any", go: "[]interface {}" },
    properties: { ordered: property },
    required: strings,
  }),
};

const tool: GoType = {
  struct: "Tool",
  fields: () => ({
    type: "string",
    items: "any",
    function: {
      struct: "ToolFunction",
      fields: () => ({
        name: "string",
        description: "string",
        parameters: {
          struct: "ToolFunctionParameters",
          fields: () => ({
            type: "string",
            $defs: "any",
            items: "any",
            required: strings,
            properties: { ordered: property },
          }),
        },
      }),
    },
  }),
};

const message: GoType = {
  struct: "Alias",
  own: true,
  fields: () => ({
    role: "string",
    content: "string",
    thinking: "string",
    images: { list: "bytes", go: "[]api.ImageData" },
    tool_calls: {
      list: {
        struct: "ToolCall",
        fields: () => ({
          id: "string",
          function: {
            struct: "ToolCallFunction",
            fields: () => ({ index: "int", name: "string", arguments: { ordered: "any" } }),
          },
        }),
      },
      go: "[]api.ToolCall",
    },
    tool_name: "string",
    tool_call_id: "string",
  }),
};

const generating: Readonly<Record<string, GoType>> = {
  model: "string",
  stream: "bool",
  format: "any",
  keep_alive: "duration",
  options: "map",
  think: "think",
  truncate: "bool",
  shift: "bool",
  _debug_render_only: "bool",
  logprobs: "bool",
  top_logprobs: "int",
};

const completionMessage: GoType = {
  struct: "Message",
  package: "openai",
  fields: () => ({
    role: "string",
    content: "any",
    reasoning: "string",
    tool_calls: {
      list: {
        struct: "ToolCall",
        package: "openai",
        fields: () => ({
          id: "string",
          index: "int",
          type: "string",
          // A struct without a name.
          function: { struct: "", fields: () => ({ name: "string", arguments: "string" }) },
        }),
      },
      go: "[]openai.ToolCall",
    },
    name: "string",
    tool_call_id: "string",
  }),
};

/** The bodies of the paths that take one. */
export const goRequests: Readonly<Record<string, GoType>> = {
  "/api/chat": {
    struct: "ChatRequest",
    fields: () => ({
      ...generating,
      messages: { list: message, go: "[]api.Message" },
      tools: { list: tool, go: "api.Tools" },
    }),
  },
  // Source: openai/openai.go, ChatCompletionRequest.
  "/v1/chat/completions": {
    struct: "ChatCompletionRequest",
    fields: () => ({
      model: "string",
      messages: { list: completionMessage, go: "[]openai.Message" },
      stream: "bool",
      max_tokens: "int",
      seed: "int",
      stop: "any",
      temperature: "float64",
      frequency_penalty: "float64",
      presence_penalty: "float64",
      top_p: "float64",
      tools: { list: tool, go: "[]api.Tool" },
      reasoning_effort: "string",
      logprobs: "bool",
      top_logprobs: "int",
    }),
  },
  "/api/generate": {
    struct: "GenerateRequest",
    fields: () => ({
      ...generating,
      prompt: "string",
      suffix: "string",
      system: "string",
      template: "string",
      context: { list: "int", go: "[]int" },
      raw: "bool",
      images: { list: "bytes", go: "[]api.ImageData" },
    }),
  },
  "/api/embed": {
    struct: "EmbedRequest",
    fields: () => ({
      model: "string",
      input: "any",
      keep_alive: "duration",
      truncate: "bool",
      dimensions: "int",
      options: "map",
    }),
  },
  "/api/show": {
    struct: "ShowRequest",
    fields: () => ({ model: "string", name: "string", system: "string", template: "string", verbose: "bool" }),
  },
};

interface Place {
  readonly struct: string;
  readonly path: string;
  /** The value is read by an `UnmarshalJSON`: Go's decoder puts the struct around it in place of those inside (`addErrorContext`). */
  readonly isFixed?: boolean;
}

/** Throws `GoJsonError` if a value is not of a type. */
export function checkGo(value: unknown, type: GoType, place?: Place): void {
  if (value === null || value === undefined || type === "any") return;
  const kind = kindOf(value);
  const refused = (go: string): never => {
    const where = place ? `Go struct field ${place.struct}.${place.path}` : "Go value";
    throw new GoJsonError(`json: cannot unmarshal ${kind} into ${where} of type ${go}`);
  };
  if (type === "names") return typeof value === "string" ? undefined : checkGo(value, strings, place);
  if (typeof type === "string") return checkPlain(value, type, kind, refused);
  if ("list" in type) {
    if (!Array.isArray(value)) return refused(type.go);
    for (const item of value) checkGo(item, type.list, place);
    return;
  }
  if ("ordered" in type) {
    if (kind !== "object") throw new GoJsonError("Value looks like object, but can't find closing '}' symbol");
    for (const item of Object.values(value)) checkGo(item, type.ordered, place && { ...place, isFixed: true });
    return;
  }
  if (kind !== "object") return refused(`${type.package ?? "api"}.${type.struct}`);
  const isFixed = place !== undefined && (place.isFixed === true || type.own === true);
  for (const [name, field] of Object.entries(type.fields()))
    if (Object.hasOwn(value, name))
      checkGo((value as Readonly<Record<string, unknown>>)[name], field, {
        struct: isFixed ? place.struct : type.struct,
        path: place ? `${place.path}.${name}` : name,
        isFixed,
      });
}

function checkPlain(
  value: unknown,
  type: Exclude<Extract<GoType, string>, "names">,
  kind: string,
  refused: (go: string) => never,
): void {
  switch (type) {
    case "string":
    case "bool":
      if (kind !== type) refused(type);
      return;
    case "int":
      if (kind !== "number" || !Number.isInteger(value)) refused("int");
      return;
    case "float64":
      if (kind !== "number") refused("float64");
      return;
    case "map":
      if (kind !== "object") refused("map[string]interface {}");
      return;
    case "bytes": {
      if (typeof value !== "string") return refused("api.ImageData");
      const illegal = /[^A-Za-z0-9+/=\r\n]/.exec(value);
      if (illegal) throw new GoJsonError(`illegal base64 data at input byte ${illegal.index}`);
      if (value.length % 4 !== 0)
        throw new GoJsonError(`illegal base64 data at input byte ${value.length - (value.length % 4)}`);
      return;
    }
    case "think": {
      if (typeof value === "boolean") return;
      if (typeof value !== "string")
        throw new GoJsonError('think must be a boolean or string ("high", "medium", "low", "max", true, or false)');
      if (!["high", "medium", "low", "max"].includes(value))
        throw new GoJsonError(
          `invalid think value: ${JSON.stringify(value)} (must be "high", "medium", "low", "max", true, or false)`,
        );
      return;
    }
    case "duration":
      if (typeof value === "number") return;
      if (typeof value !== "string") throw new GoJsonError(`Unsupported type: '${kind}'`);
      if (!/^[-+]?(\d+(\.\d*)?(ns|us|µs|ms|s|m|h))+$|^0$/.test(value))
        throw new GoJsonError(
          /\d$/.test(value)
            ? `time: missing unit in duration ${JSON.stringify(value)}`
            : `time: invalid duration ${JSON.stringify(value)}`,
        );
      return;
    case "any":
  }
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return "array";
  return typeof value === "boolean" ? "bool" : typeof value;
}

const optionTypes: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ["num_ctx", "num_batch", "num_gpu", "main_gpu", "num_thread", "draft_num_predict", "num_keep", "seed"].map(integer),
  ),
  ...Object.fromEntries(["num_predict", "top_k", "repeat_last_n"].map(integer)),
  ...Object.fromEntries(
    ["top_p", "min_p", "typical_p", "temperature", "repeat_penalty", "presence_penalty", "frequency_penalty"].map(
      (name) => [name, "float32"],
    ),
  ),
  use_mmap: "boolean",
  stop: "array",
};

function integer(name: string): [string, string] {
  return [name, "integer"];
}

/** Why an option is refused, with status 500; undefined: it is not. Unknown options are ignored. Source: api/types.go, `FromMap`. */
export function optionRefusal(options: Readonly<Record<string, unknown>>): string | undefined {
  for (const [name, value] of Object.entries(options)) {
    const type = Object.hasOwn(optionTypes, name) ? optionTypes[name] : undefined;
    if (type === undefined || value === null) continue;
    const fits =
      type === "array"
        ? Array.isArray(value)
        : type === "boolean"
          ? typeof value === "boolean"
          : typeof value === "number";
    if (!fits) return `option "${name}" must be of type ${type}`;
    if (Array.isArray(value) && value.some((item) => typeof item !== "string"))
      return `option "${name}" must be of an array of strings`;
  }
  return undefined;
}
