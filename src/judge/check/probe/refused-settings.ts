import { apiOfEndpoint, type Exchange } from "../rules/exchange.ts";
import { isObject } from "../../../wire/core/json.ts";
import { type Json, parsedJson } from "../rules/view.ts";

/** A setting that a probe sends for its own sake, and that some models refuse though the API has it. */
interface Setting {
  readonly name: string;
  /** What a message says that refuses it, and not its value or another parameter. */
  readonly sign: string;
  /** Of other values the probe wants to know whether they are refused. */
  isHarmless(value: unknown): boolean;
  without(body: Json): Json;
}

/**
 * OpenAI's reasoning models take no temperature but 1, and max_completion_tokens in place of max_tokens; Anthropic's newer models take no
 * temperature ("`temperature` is deprecated for this model"). Source: agno #9951, Mixpeal/anthropic-sdk #11.
 */
const settings: readonly Setting[] = [
  {
    name: "temperature",
    sign: "",
    isHarmless: (value) => value === 0,
    without: (body) => ({ ...body, temperature: undefined }),
  },
  {
    name: "max_tokens",
    sign: "max_completion_tokens",
    isHarmless: (value) => typeof value === "number" && value > 0,
    without: ({ max_tokens: limit, ...rest }) => ({ ...rest, max_completion_tokens: limit }),
  },
];

/** What a model was found to refuse, so that no answer is lost to it: the probes are then sent without. */
export class RefusedSettings {
  readonly #found = new Map<string, Set<string>>();

  /** A request's body as it is sent to this endpoint. */
  adapted(endpoint: Exchange["endpoint"], body: Json): Json {
    const refused = this.#found.get(apiOfEndpoint[endpoint] ?? "");
    return settings.reduce(
      (sent, { name, isHarmless, without }) => (refused?.has(name) && isHarmless(sent[name]) ? without(sent) : sent),
      body,
    );
  }

  /** Whether an exchange is the refusal of such a setting; it is then to be asked again. */
  learn({ endpoint, request, response }: Exchange): boolean {
    const isRefusal = response.status === 400 || response.status === 422 || endpoint === "response-socket-error";
    const api = apiOfEndpoint[endpoint];
    if (!isRefusal || api === undefined) return false;
    const value = parsedJson(response.body);
    const { param, message } = isObject(value) && isObject(value.error) ? value.error : {};
    const refused = settings.find(
      ({ name, sign, isHarmless }) =>
        isHarmless(request.body?.[name]) &&
        (param === name || String(message).includes(name)) &&
        String(message).includes(sign),
    );
    if (!refused) return false;
    const found = this.#found.get(api) ?? new Set();
    this.#found.set(api, found.add(refused.name));
    return true;
  }

  /** A sentence without its full stop for each of them. */
  remarks(): string[] {
    return settings.flatMap(({ name }) => {
      const apis = [...this.#found].filter(([, names]) => names.has(name)).map(([api]) => api);
      const instead = name === "max_tokens" ? "with max_completion_tokens" : "without";
      const what = name === "temperature" ? "temperature: 0" : name;
      return apis.length === 0 ? [] : [`the model refuses ${what} (${apis.join(", ")}), so it was asked ${instead}`];
    });
  }
}
