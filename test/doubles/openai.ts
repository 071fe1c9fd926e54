import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { type AnswerPart, answerOf } from "../../src/judge/between/facts.ts";
import { startVendor, vendorContext } from "../../src/judge/between/vendor.ts";
import { exact } from "../../src/wire/apis/profile.ts";
import { responsesPort } from "../../src/wire/apis/responses/port.ts";
import { accumulate } from "../../src/wire/core/accumulate.ts";
import { isObject, type JsonObject } from "../../src/wire/core/json.ts";
import { runSync } from "../../src/wire/core/steps.ts";
import { listOf } from "./chat-server.ts";

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

/** An accepted request, whose items are stored when its answer has been sent. */
interface Accepted {
  readonly body: JsonObject;
  readonly organization: string;
  readonly input: readonly JsonObject[];
  /** The answer as it was sent. */
  readonly sent: () => string;
}

/** The API without HTTP: what it stores, and the answers to bodies. */
export class OpenAiService {
  readonly models: readonly string[];
  readonly #options: Omit<OpenAiDoubleOptions, "organizations">;
  readonly #vault: Vault;
  readonly #stores = new Map<string, Store>();
  #unstored: Accepted[] = [];

  constructor(options: Omit<OpenAiDoubleOptions, "organizations">) {
    this.#options = options;
    this.#vault = new Vault(options.key ?? randomBytes(32));
    this.models = ["gpt-5", ...(options.plainModels ?? [])];
  }

  /** Returns the items of the conversation. Throws `Refused`. */
  check(body: JsonObject, organization: string): readonly JsonObject[] {
    for (const accepted of this.#unstored.splice(0)) if (accepted.body["store"] !== false) this.#keep(accepted);
    const store = this.#storeOf(organization);
    checkModel(body, this.models, this.#options.plainModels ?? []);
    const input = fullInput(body, store);
    checkItems(input, { body, store, vault: this.#vault, organization });
    return input;
  }

  /** Returns what the model says to a body that `check` has accepted. */
  parts({ body, organization, input, sent }: Accepted): AnswerPart[] {
    this.#unstored.push({ body, organization, input, sent });
    const { reasoning: text, ...turn } = this.#options.turn({ body, input });
    const isCustom = (name: string): boolean =>
      listOf(body["tools"]).some((tool) => tool["type"] === "custom" && tool["name"] === name);
    const rest = [
      ...(turn.text === undefined ? [] : [{ text: turn.text }]),
      ...(turn.calls ?? []).map((call) => ({
        id: `call_${randomBytes(12).toString("hex")}`,
        ...call,
        ...(isCustom(call.name) && { kind: "custom" as const }),
      })),
    ];
    if (text === undefined || this.#options.plainModels?.includes(String(body["model"]))) return rest;
    const [first] = rest;
    const next = first && ("text" in first ? "message" : first.id);
    const showsSummary = isObject(body["reasoning"]) && typeof body["reasoning"]["summary"] === "string";
    const value = this.#vault.encrypt({ organization, text, next });
    return [{ reasoning: showsSummary ? text : "", summary: 0, state: { kind: "encrypted", value } }, ...rest];
  }

  /** Returns the whole response to a body. Throws `Refused`. */
  answer(body: JsonObject, organization = "org-1"): JsonObject {
    const input = this.check(body, organization);
    let written = "";
    const parts = this.parts({ body, organization, input, sent: () => written });
    const generation = accumulate(answerOf(parts).flat());
    const read = runSync(responsesPort.readRequest(body, "req_1", { profile: exact, forwards: true }));
    written = read.writeResponse(generation, vendorContext(String(body["model"])));
    return JSON.parse(written) as JsonObject;
  }

  #storeOf(organization: string): Store {
    const store = this.#stores.get(organization) ?? new Store();
    this.#stores.set(organization, store);
    return store;
  }

  #keep({ organization, input, sent }: Accepted): void {
    const response = responseIn(sent());
    if (!response) return;
    const store = this.#storeOf(organization);
    const items = listOf(response["output"]).map(withoutEncrypted);
    store.responses.set(String(response["id"]), [...input, ...items]);
    const [first, second] = items;
    const reasoning = first?.["type"] === "reasoning" ? String(first["id"]) : undefined;
    for (const item of items) {
      const isFirst = item === first && reasoning !== undefined;
      const [needs, next] = isFirst ? [undefined, nameOf(second)] : [reasoning, undefined];
      store.items.set(String(item["id"]), { item, reasoning: needs, next });
    }
  }
}

function withoutEncrypted(item: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(item).filter(([name]) => name !== "encrypted_content"));
}

/** The response in a body, or at the end of a stream; undefined: it is not complete. */
function responseIn(text: string): JsonObject | undefined {
  if (text.startsWith("{")) return JSON.parse(text) as JsonObject;
  const line = text.split("\n").findLast((one) => one.startsWith('data: {"type":"response.completed"'));
  return line === undefined
    ? undefined
    : (JSON.parse(line.slice("data: ".length)) as { response: JsonObject }).response;
}

/** Starts the double on loopback. */
export async function startOpenAi({ organizations, ...options }: OpenAiDoubleOptions): Promise<OpenAiDouble> {
  const requests: JsonObject[] = [];
  const refusals: string[] = [];
  const service = new OpenAiService(options);
  const inputs = new WeakMap<object, readonly JsonObject[]>();
  const organizationOf = (key: string): string | undefined => (organizations ? organizations[key] : "org-1");
  const { url, close } = await startVendor({
    apis: ["responses"],
    port: 0,
    models: service.models,
    isKeyless: !organizations,
    refusal(received) {
      const { body = {}, key } = received;
      try {
        const organization = organizationOf(key);
        if (organization === undefined) throw new Refused("Incorrect API key provided.", null, "invalid_api_key", 401);
        requests.push(body);
        inputs.set(received, service.check(body, organization));
        return undefined;
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        const { status, ...own } = error.refusal;
        refusals.push(own.message);
        return { status, body: { error: { ...own, type: "invalid_request_error" } } };
      }
    },
    onRequest({ refusal }) {
      if (refusal) refusals.push(refusal.message);
    },
    answer(received) {
      const { body = {}, key } = received;
      const input = inputs.get(received) ?? [];
      const sent = (): string => received.sent;
      const parts = service.parts({ body, organization: organizationOf(key) ?? "", input, sent });
      return { batches: answerOf(parts, { least: 9 }) };
    },
  });
  return { url: `${url}/v1`, requests, refusals, close };
}

/* Requests */

function checkModel(
  { model, include, reasoning }: JsonObject,
  models: readonly string[],
  plain: readonly string[],
): void {
  if (!models.includes(String(model)))
    throw new Refused(`The requested model '${String(model)}' does not exist.`, "model", "model_not_found");
  if (!plain.includes(String(model))) return;
  if (isObject(reasoning) && (reasoning["effort"] ?? null) !== null)
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
