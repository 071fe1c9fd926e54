import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { createServer, type ServerResponse } from "node:http";
import { isObject, type JsonObject } from "../../src/wire/core/json.ts";
import { listen, readBody, sendJson } from "./chat-server.ts";

/*
 * OpenAI's Responses API as a session meets it: what it stores, what it encrypts, and what it demands of the items of earlier turns.
 *
 * Sources of the words: openai/codex#8145 and smallmain/vscode-unify-chat-provider#178 (encrypted content), continuedev/continue#8933 and
 * vercel/ai#7099 (a reasoning item without its following item), VRSEN/agency-swarm#367 (a call without its reasoning item),
 * https://platform.openai.com/docs/guides/reasoning ("Encrypted reasoning items"), and the specification of the API.
 */

/** What the model does in one turn, in this order. */
export interface OpenAiTurn {
  readonly reasoning?: string;
  readonly text?: string;
  readonly calls?: readonly { readonly name: string; readonly arguments: string }[];
}

export interface OpenAiDoubleOptions {
  /** `input`: the items of the request after those of the response that it continues, references replaced by what they refer to. */
  turn(request: { readonly body: JsonObject; readonly input: readonly JsonObject[] }): OpenAiTurn;
  /** The organizations of API keys. Absent: every key belongs to the same one. */
  readonly organizations?: Readonly<Record<string, string>>;
  /** The models that do not reason, in addition to `gpt-5`, which does. */
  readonly plainModels?: readonly string[];
  /** The key with which content is encrypted, of 32 bytes: servers with the same key are one vendor. Default: a key of its own. */
  readonly key?: Uint8Array;
}

export interface OpenAiRefusal {
  readonly status: number;
  readonly message: string;
  readonly param: string | null;
  readonly code: string | null;
}

export interface OpenAiDouble {
  /** The base URL, `/v1` included. */
  readonly url: string;
  /** The bodies of requests for responses, in order, those that were refused included. */
  readonly requests: readonly JsonObject[];
  /** The words of refusals, in order. */
  readonly refusals: readonly string[];
  close(): Promise<void>;
}

/** An item that was stored, and the reasoning item that it needs before it. */
interface StoredItem {
  readonly item: JsonObject;
  readonly reasoning: string | undefined;
  /** The item that has to follow it, if it is reasoning. */
  readonly next: string | undefined;
}

/** What one organization has stored. */
class Store {
  readonly responses = new Map<string, readonly JsonObject[]>();
  readonly items = new Map<string, StoredItem>();
}

/** A request that the API refuses. */
export class Refused extends Error {
  readonly refusal: OpenAiRefusal;

  constructor(message: string, param: string | null, code: string | null = null, status = 400) {
    super(message);
    this.refusal = { status, message, param, code };
  }
}

/** Encrypts and decrypts reasoning for an organization. */
class Vault {
  readonly #key: Uint8Array;

  constructor(key: Uint8Array) {
    this.#key = key;
  }

  /** `next`: the item that follows the reasoning. */
  encrypt(content: {
    readonly organization: string;
    readonly text: string;
    readonly next: string | undefined;
  }): string {
    const nonce = randomBytes(12);
    const cipher = createCipheriv("aes-256-gcm", this.#key, nonce);
    const bytes = Buffer.concat([cipher.update(JSON.stringify(content), "utf8"), cipher.final()]);
    return Buffer.concat([version, nonce, cipher.getAuthTag(), bytes]).toString("base64url");
  }

  /** Returns the item that follows the reasoning. Throws `Refused`. */
  open(text: string, id: unknown, organization: string): string | undefined {
    const named = typeof id === "string" ? `for item ${id}` : `${text.slice(0, 4)}...${text.slice(-4)}`;
    const refused = (reason: string): Refused =>
      new Refused(
        `The encrypted content ${named} could not be verified. Reason: ${reason}`,
        null,
        "invalid_encrypted_content",
      );
    let content: { readonly organization: string; readonly next?: string };
    try {
      const bytes = Buffer.from(text, "base64url");
      const cipher = createDecipheriv("aes-256-gcm", this.#key, bytes.subarray(1, 13), { authTagLength: 16 });
      cipher.setAuthTag(bytes.subarray(13, 29));
      const plain = Buffer.concat([cipher.update(bytes.subarray(29)), cipher.final()]).toString();
      content = JSON.parse(plain) as typeof content;
    } catch {
      throw refused("Encrypted content could not be decrypted or parsed.");
    }
    if (content.organization !== organization)
      throw refused("Encrypted content organization_id did not match the target organization.");
    return content.next;
  }
}

/** As Fernet's: encrypted contents begin with `gAAA`. */
const version = Buffer.from([0x80]);

/** The API without HTTP: what it stores, and the answers to bodies. */
export class OpenAiService {
  readonly models: readonly string[];
  readonly #options: Omit<OpenAiDoubleOptions, "organizations">;
  readonly #vault: Vault;
  readonly #stores = new Map<string, Store>();

  constructor(options: Omit<OpenAiDoubleOptions, "organizations">) {
    this.#options = options;
    this.#vault = new Vault(options.key ?? randomBytes(32));
    this.models = ["gpt-5", ...(options.plainModels ?? [])];
  }

  /** Returns the answer to a body. Throws `Refused`. */
  answer(body: JsonObject, organization = "org-1"): Answer {
    const { plainModels = [], turn } = this.#options;
    const vault = this.#vault;
    let store = this.#stores.get(organization);
    if (!store) this.#stores.set(organization, (store = new Store()));
    checkMembers(body, this.models, plainModels);
    const input = fullInput(body, store);
    checkItems(input, { body, store, vault, organization });
    const { reasoning, ...rest } = turn({ body, input });
    const reasons = reasoning !== undefined && !plainModels.includes(String(body["model"]));
    const answer = new Answer(body, reasons ? { ...rest, reasoning } : rest, { vault, organization });
    if (body["store"] !== false) answer.putInto(store, input);
    return answer;
  }
}

/** Starts the double on loopback. */
export async function startOpenAi({ organizations, ...options }: OpenAiDoubleOptions): Promise<OpenAiDouble> {
  const requests: JsonObject[] = [];
  const refusals: string[] = [];
  const service = new OpenAiService(options);
  const http = createServer((request, response) => {
    const refuse = (refusal: OpenAiRefusal): void => {
      refusals.push(refusal.message);
      const { status, ...error } = refusal;
      sendJson(response, status, { error: { ...error, type: "invalid_request_error" } });
    };
    const key = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1] ?? "";
    const organization = organizations ? organizations[key] : "org-1";
    if (organization === undefined)
      return refuse({
        status: 401,
        message: "Incorrect API key provided.",
        param: null,
        code: "invalid_api_key",
      });
    if (request.method === "GET" && request.url === "/v1/models")
      return sendJson(response, 200, {
        object: "list",
        data: service.models.map((id) => ({ id, object: "model", created: 1_760_000_000, owned_by: "system" })),
      });
    if (request.method !== "POST" || request.url !== "/v1/responses")
      return sendJson(response, 404, { error: { message: `Invalid URL (${request.method} ${request.url})` } });
    void readBody(request).then((text) => {
      if (text === "") return sendJson(response, 400, { error: { message: "We could not parse the JSON body." } });
      const body = JSON.parse(text) as JsonObject;
      requests.push(body);
      try {
        const answer = service.answer(body, organization);
        if (body["stream"] === true) answer.stream(response);
        else sendJson(response, 200, answer.body("completed"));
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        refuse(error.refusal);
      }
    });
  });
  const { url, close } = await listen(http);
  return { url: `${url}/v1`, requests, refusals, close };
}

/* Requests */

/** Members of a request. Source: `CreateResponse` of the specification. */
const members = new Set(
  `background client_metadata context_management conversation include input instructions max_output_tokens max_tool_calls metadata model
  parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options prompt_cache_retention reasoning safety_identifier
  service_tier store stream stream_options temperature text tool_choice tools top_logprobs top_p truncation user`.split(
    /\s+/,
  ),
);

const includable = new Set([
  "file_search_call.results",
  "web_search_call.results",
  "web_search_call.action.sources",
  "message.input_image.image_url",
  "computer_call_output.output.image_url",
  "code_interpreter_call.outputs",
  "reasoning.encrypted_content",
  "message.output_text.logprobs",
]);

function checkMembers(body: JsonObject, models: readonly string[], plain: readonly string[]): void {
  for (const name of Object.keys(body)) if (!members.has(name)) throw unknown(name);
  const { model, include, reasoning } = body;
  if (!models.includes(String(model)))
    throw new Refused(`The requested model '${String(model)}' does not exist.`, "model", "model_not_found");
  for (const [at, value] of (Array.isArray(include) ? include : []).entries())
    if (!includable.has(String(value)))
      throw new Refused(`Invalid value: '${String(value)}'.`, `include[${at}]`, "invalid_value");
  if (!plain.includes(String(model))) return;
  if (isObject(reasoning) && reasoning["effort"] !== undefined && reasoning["effort"] !== null)
    throw new Refused(
      "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
      "reasoning.effort",
      "unsupported_parameter",
    );
  if (Array.isArray(include) && include.includes("reasoning.encrypted_content"))
    throw new Refused("Encrypted content is not supported with this model.", "include");
}

function unknown(path: string): Refused {
  return new Refused(`Unknown parameter: '${path}'.`, path, "unknown_parameter");
}

function notFound(id: string): Refused {
  const advice =
    "Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.";
  return new Refused(`Item with id '${id}' not found. ${advice}`, "input", null, 404);
}

/** The items of the conversation, references replaced by what they refer to. */
function fullInput({ input, previous_response_id: previous }: JsonObject, store: Store): readonly JsonObject[] {
  const before = typeof previous === "string" ? store.responses.get(previous) : [];
  if (!before)
    throw new Refused(
      `Previous response with id '${String(previous)}' not found.`,
      "previous_response_id",
      "previous_response_not_found",
    );
  const own: readonly JsonObject[] =
    typeof input === "string" ? [{ role: "user", content: input }] : Array.isArray(input) ? input.filter(isObject) : [];
  return [
    ...before,
    ...own.map((item) => {
      if (typeOf(item) !== "item_reference") return item;
      const id = String(item["id"]);
      const found = store.items.get(id)?.item;
      if (!found) throw notFound(id);
      return found;
    }),
  ];
}

function typeOf({ type, role }: JsonObject): string {
  if (typeof type === "string") return type;
  return role === undefined ? "item_reference" : "message";
}

/** The members of an item, and what its id begins with. Source: the schemas of items in the specification. */
const itemForms: Readonly<Record<string, { readonly prefix: string; readonly members: string }>> = {
  message: { prefix: "msg", members: "id type role content status phase" },
  reasoning: { prefix: "rs", members: "id type summary content encrypted_content status" },
  function_call: { prefix: "fc", members: "id type call_id name arguments status namespace async" },
  function_call_output: { prefix: "fc", members: "id type call_id output status" },
  custom_tool_call: { prefix: "ctc", members: "id type call_id name input status namespace async" },
  custom_tool_call_output: { prefix: "ctc", members: "id type call_id output status" },
};

/** The types of items that the model has made, which may follow reasoning. */
function isOfModel(item: JsonObject | undefined): boolean {
  if (!item) return false;
  const type = typeOf(item);
  return type === "message" ? item["role"] === "assistant" : type.endsWith("_call");
}

/** How the item is known that has to follow a reasoning item: by the id of its call; all messages of the model are alike. */
function nameOf(item: JsonObject | undefined): string | undefined {
  if (!item || !isOfModel(item)) return undefined;
  return typeOf(item) === "message" ? "message" : String(item["call_id"]);
}

/** Throws `Refused` for what the API does not take of a conversation. */
function checkItems(
  input: readonly JsonObject[],
  {
    body,
    store,
    vault,
    organization,
  }: { readonly body: JsonObject; readonly store: Store; readonly vault: Vault; readonly organization: string },
): void {
  const ids = new Set<string>();
  const reasoningIds = new Set<string>();
  const calls = new Map<string, string>();
  const open = new Map<string, string>();
  for (const [at, item] of input.entries()) {
    const path = `input[${at}]`;
    const type = typeOf(item);
    const form = itemForms[type];
    if (form) {
      const known = form.members.split(" ");
      for (const name of Object.keys(item)) if (!known.includes(name)) throw unknown(`${path}.${name}`);
    }
    for (const name of ["id", "call_id"]) {
      const value = item[name];
      if (typeof value === "string" && value.length > 64)
        throw new Refused(
          `Invalid '${path}.${name}': string too long. Expected a string with maximum length 64, but got a string with length ${value.length} instead.`,
          `${path}.${name}`,
          "string_above_max_length",
        );
    }
    const { id } = item;
    if (typeof id === "string") {
      if (form && !id.startsWith(form.prefix))
        throw new Refused(
          `Invalid '${path}.id': '${id}'. Expected an ID that begins with '${form.prefix}'.`,
          `${path}.id`,
          "invalid_value",
        );
      if (ids.has(id))
        throw new Refused(
          `Duplicate item found with id ${id}. Remove duplicate items from your input and try again.`,
          "input",
        );
      ids.add(id);
    }
    const stored = typeof id === "string" ? store.items.get(id) : undefined;
    if (stored?.reasoning !== undefined && !reasoningIds.has(stored.reasoning))
      throw new Refused(
        `Item '${String(id)}' of type '${type}' was provided without its required 'reasoning' item: '${stored.reasoning}'.`,
        "input",
      );
    switch (type) {
      case "message":
        checkContent(item, path);
        break;
      case "reasoning": {
        if (!Array.isArray(item["summary"]))
          throw new Refused(
            `Missing required parameter: '${path}.summary'.`,
            `${path}.summary`,
            "missing_required_parameter",
          );
        const { encrypted_content: encrypted } = item;
        if (typeof encrypted !== "string" && !stored) throw notFound(String(id));
        const next = typeof encrypted === "string" ? vault.open(encrypted, id, organization) : stored?.next;
        if (typeof id === "string") reasoningIds.add(id);
        const follower = input.slice(at + 1).find((other) => typeOf(other) !== "reasoning");
        if (!isOfModel(follower) || (next !== undefined && nameOf(follower) !== next))
          throw new Refused(
            `Item '${String(id)}' of type 'reasoning' was provided without its required following item.`,
            "input",
          );
        break;
      }
      case "function_call":
      case "custom_tool_call":
        calls.set(String(item["call_id"]), type);
        open.set(String(item["call_id"]), type);
        break;
      case "function_call_output":
      case "custom_tool_call_output": {
        const call = String(item["call_id"]);
        const kind = type === "function_call_output" ? "function call" : "custom tool call";
        if (calls.get(call) !== type.slice(0, -"_output".length))
          throw new Refused(`No tool call found for ${kind} output with call_id ${call}.`, "input");
        open.delete(call);
      }
    }
  }
  for (const [call, type] of open)
    throw new Refused(
      `No tool output found for ${type === "function_call" ? "function call" : "custom tool call"} ${call}.`,
      "input",
    );
  if (input.length === 0 && body["prompt"] === undefined)
    throw new Refused("Missing required parameter: 'input'.", "input", "missing_required_parameter");
}

function checkContent({ role, content }: JsonObject, path: string): void {
  const types = role === "assistant" ? ["output_text", "refusal"] : ["input_text", "input_image", "input_file"];
  for (const [at, part] of (Array.isArray(content) ? content : []).entries()) {
    const type = isObject(part) ? String(part["type"]) : "";
    if (types.includes(type)) continue;
    const supported = types.map((name) => `'${name}'`).join(", ");
    throw new Refused(
      `Invalid value: '${type}'. Supported values are: ${supported}.`,
      `${path}.content[${at}].type`,
      "invalid_value",
    );
  }
}

/* Answers */

const digits = (count: number): string => randomBytes(count / 2).toString("hex");

/** What the ids of a conversation's responses and items have in common (recordings of 2026-04). */
class Ids {
  readonly #head: string;
  readonly #group: string;

  /** `previous`: the response that this one continues. */
  constructor(previous: unknown) {
    const [, head, group] = /^resp_([0-9a-f]{16})00[0-9a-f]{12}([0-9a-f]{4})/.exec(String(previous)) ?? [];
    this.#head = head ?? `0${digits(16).slice(1)}`;
    this.#group = group ?? `819${digits(2).slice(1)}`;
  }

  next(prefix: string): string {
    return `${prefix}_${this.#head}00${digits(12)}${this.#group}${digits(16)}`;
  }
}

/** One response. Its encrypted contents differ each time that it is written, as OpenAI's do. */
class Answer {
  readonly #request: JsonObject;
  readonly #text: string;
  readonly #maker: { readonly vault: Vault; readonly organization: string };
  readonly #id: string;
  readonly #items: readonly JsonObject[];

  constructor(
    request: JsonObject,
    { reasoning, text, calls = [] }: OpenAiTurn,
    maker: { readonly vault: Vault; readonly organization: string },
  ) {
    this.#request = request;
    this.#maker = maker;
    const ids = new Ids(request["previous_response_id"]);
    this.#id = ids.next("resp");
    this.#text = reasoning ?? "";
    const { tools, reasoning: options } = request;
    const showsSummary = isObject(options) && typeof options["summary"] === "string";
    const isCustom = (name: string): boolean =>
      Array.isArray(tools) &&
      tools.some((tool) => isObject(tool) && tool["type"] === "custom" && tool["name"] === name);
    const items: JsonObject[] = [];
    if (reasoning !== undefined)
      items.push({
        id: ids.next("rs"),
        type: "reasoning",
        summary: showsSummary ? [{ type: "summary_text", text: reasoning }] : [],
      });
    if (text !== undefined)
      items.push({
        id: ids.next("msg"),
        type: "message",
        status: "completed",
        role: "assistant",
        content: [{ type: "output_text", annotations: [], logprobs: [], text }],
      });
    for (const { name, arguments: input } of calls) {
      const call = { status: "completed", call_id: `call_${randomBytes(12).toString("hex")}`, name };
      items.push(
        isCustom(name)
          ? { id: ids.next("ctc"), type: "custom_tool_call", ...call, input }
          : { id: ids.next("fc"), type: "function_call", ...call, arguments: input },
      );
    }
    this.#items = items;
  }

  putInto(store: Store, input: readonly JsonObject[]): void {
    store.responses.set(this.#id, [...input, ...this.#items]);
    const [first, second] = this.#items;
    const reasoning = first?.["type"] === "reasoning" ? String(first["id"]) : undefined;
    for (const item of this.#items) {
      const isFirst = item === first && reasoning !== undefined;
      store.items.set(String(item["id"]), {
        item,
        reasoning: isFirst ? undefined : reasoning,
        next: isFirst ? nameOf(second) : undefined,
      });
    }
  }

  body(status: "in_progress" | "completed"): JsonObject {
    const {
      model,
      store = true,
      tools = [],
      instructions = null,
      previous_response_id: previous = null,
    } = this.#request;
    const usage = {
      input_tokens: 10,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 5,
      output_tokens_details: { reasoning_tokens: this.#text === "" ? 0 : 3 },
      total_tokens: 15,
    };
    const isDone = status === "completed";
    return {
      id: this.#id,
      object: "response",
      created_at: 1_760_000_000,
      status,
      error: null,
      incomplete_details: null,
      instructions,
      model,
      output: isDone ? this.#items.map((_, at) => this.#item(at)) : [],
      parallel_tool_calls: true,
      previous_response_id: previous,
      store,
      tools,
      usage: isDone ? usage : null,
    };
  }

  stream(response: ServerResponse): void {
    response.writeHead(200, { "content-type": "text/event-stream" });
    let number = 0;
    const send = (type: string, more: JsonObject): void => {
      response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...more, sequence_number: number++ })}\n\n`);
    };
    send("response.created", { response: this.body("in_progress") });
    send("response.in_progress", { response: this.body("in_progress") });
    for (const at of this.#items.keys()) {
      const item = this.#item(at);
      const place = { item_id: item["id"], output_index: at };
      send("response.output_item.added", { output_index: at, item: emptied(item) });
      const deltas = (type: string, text: unknown, more: JsonObject = {}): void => {
        for (const delta of String(text).match(/.{1,7}/gsu) ?? []) send(`${type}.delta`, { ...place, ...more, delta });
      };
      switch (item["type"]) {
        case "reasoning":
          for (const [index, part] of (item["summary"] as readonly JsonObject[]).entries()) {
            const { text } = part;
            const summary = { summary_index: index };
            send("response.reasoning_summary_part.added", { ...place, ...summary, part: { ...part, text: "" } });
            deltas("response.reasoning_summary_text", text, summary);
            send("response.reasoning_summary_text.done", { ...place, ...summary, text });
            send("response.reasoning_summary_part.done", { ...place, ...summary, part });
          }
          break;
        case "message": {
          const [part = {}] = item["content"] as readonly JsonObject[];
          const { text } = part;
          const content = { content_index: 0 };
          send("response.content_part.added", { ...place, ...content, part: { ...part, text: "" } });
          deltas("response.output_text", text, { ...content, logprobs: [] });
          send("response.output_text.done", { ...place, ...content, logprobs: [], text });
          send("response.content_part.done", { ...place, ...content, part });
          break;
        }
        case "function_call":
          deltas("response.function_call_arguments", item["arguments"]);
          send("response.function_call_arguments.done", { ...place, arguments: item["arguments"] });
          break;
        case "custom_tool_call":
          deltas("response.custom_tool_call_input", item["input"]);
          send("response.custom_tool_call_input.done", { ...place, input: item["input"] });
      }
      send("response.output_item.done", { output_index: at, item });
    }
    send("response.completed", { response: this.body("completed") });
    response.end();
  }

  /** The item as the client gets it: reasoning with its encrypted content if that is included. */
  #item(at: number): JsonObject {
    const item = this.#items[at] ?? {};
    const { include } = this.#request;
    const isIncluded = Array.isArray(include) && include.includes("reasoning.encrypted_content");
    if (item["type"] !== "reasoning" || !isIncluded) return item;
    const { vault, organization } = this.#maker;
    const content = { organization, text: this.#text, next: nameOf(this.#items[at + 1]) };
    return { ...item, encrypted_content: vault.encrypt(content) };
  }
}

/** An item as it begins. */
function emptied(item: JsonObject): JsonObject {
  switch (item["type"]) {
    case "reasoning":
      return { ...item, summary: [] };
    case "message":
      return { ...item, status: "in_progress", content: [] };
    case "function_call":
      return { ...item, status: "in_progress", arguments: "" };
    default:
      return { ...item, status: "in_progress", input: "" };
  }
}
