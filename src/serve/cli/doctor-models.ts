import { type ListedModel, readModelList } from "../../wire/apis/models/models.ts";
import { isObject } from "../../wire/core/json.ts";
import type { Probe, ProbeResult } from "../../judge/check/probe/probe.ts";
import { RefusedSettings } from "../../judge/check/probe/refused-settings.ts";
import { send } from "../../judge/check/probe/send.ts";
import { httpRefusal, parsedOrNothing } from "./doctor-answer.ts";
import type { DoctorFinding, ServerQuestion } from "./doctor-report.ts";

/** `headers`: of the answer. */
interface ModelList {
  readonly url: string;
  readonly models: readonly ListedModel[];
  readonly headers: Readonly<Record<string, string>>;
}

/** Lists the models of a server, at its base URL or at `/v1` below it. Returns findings if it has no list. */
export async function listModels(
  { url, key, model, budget }: ServerQuestion,
  signal: AbortSignal,
): Promise<ModelList | { readonly findings: DoctorFinding[] }> {
  const target = { model: "", ...(key !== undefined && { key }), timeout: budget, refused: new RefusedSettings() };
  const nothing = (text: string, cure: string): { findings: DoctorFinding[] } => ({
    findings: [{ id: "server", status: "problem", text, cure }],
  });
  const own = await send(getProbe("/models"), { ...target, url }, signal);
  const models = listOf(own);
  if (models) return { url, models, headers: headersOf(own) };
  if (own.exchange !== undefined && !/\/v\d+$/.test(url)) {
    const below = `${url}/v1`;
    const found = await send(getProbe("/models"), { ...target, url: below }, signal);
    const inside = listOf(found);
    if (inside) return { url: below, models: inside, headers: headersOf(found) };
    if (isClosed(found)) return nothing(closed(below), "pass its key with --key, or in OPENAI_API_KEY");
  }
  if (isClosed(own)) return nothing(closed(url), "pass its key with --key, or in OPENAI_API_KEY");
  if (own.exchange === undefined)
    return signal.aborted
      ? nothing(
          `${url} accepts connections or drops them, and sends no answer within ${budget / 1000} s`,
          "look at the server's log, or start it again",
        )
      : nothing(
          `no server answers at ${url}: ${own.failure ?? "no answer"}`,
          /certificate/.test(own.failure ?? "")
            ? `trust the authority of its certificate: NODE_EXTRA_CA_CERTS=ca.pem truewire doctor ${url}`
            : "start the server, or give another URL: truewire doctor http://localhost:11434/v1",
        );
  const { status, body } = own.exchange.response;
  if (status >= 500)
    return nothing(
      `${url} answers with status ${status}: ${httpRefusal(own.exchange)}`,
      "wait until it has started, or look at its log",
    );
  if (model !== undefined && status === 404) return { url, models: [], headers: headersOf(own) };
  const form = /^\s*</.test(body) ? "a web page" : "no list of models";
  const says =
    status < 400 || /^\s*</.test(body) ? `/models has ${form} (status ${status})` : httpRefusal(own.exchange);
  return nothing(
    `what answers at ${url} is no API: ${says}`,
    "give the base URL of an API, such as http://localhost:11434/v1",
  );
}

function listOf({ exchange }: ProbeResult): readonly ListedModel[] | null {
  if (exchange?.response.status !== 200) return null;
  const body = parsedOrNothing(exchange.response.body);
  // Ollama without models: `"data":null`.
  if (isObject(body) && body["object"] === "list" && body["data"] === null) return [];
  return readModelList(exchange.response.body);
}

const headersOf = ({ exchange }: ProbeResult): ModelList["headers"] => exchange?.response.headers ?? {};

const closed = (url: string): string => `${url} asks for a key, or for another one`;

function isClosed({ exchange }: ProbeResult): boolean {
  return exchange?.response.status === 401 || exchange?.response.status === 403;
}

/** A GET request of a path. */
export function getProbe(path: string): Probe {
  return { id: path, about: path, endpoint: "other", method: "GET", path: () => path, expects: "any" };
}
