import { z } from "zod";
import { integerWords, rangeMark, requestShapes } from "./request-shapes.ts";
import type { RequestShapes } from "./request-shapes.ts";

/** One member of a request's body: how it is checked, and what docs/parameters.md says of it, which is written from these. */
export interface MessageParameter {
  readonly name: string;
  readonly treatment: "honoured" | "accepted" | "refused";
  readonly note: string;
  readonly required: boolean;
  /** `strict`: as Anthropic judges; else as tolerant as can be honoured. */
  readonly shape: (shapes: RequestShapes, strict: boolean) => z.ZodType;
}

/** Every member of `POST /v1/messages`. */
export const messageParameters: readonly MessageParameter[] = [
  required("model", "", () => z.string().min(1)),
  required(
    "messages",
    "Texts, images, documents (a local model reads those of text), thinking with its signature, calls and their results with `is_error`; `system` messages in the middle, with tools that come and go; an assistant's message at the end is continued. Blocks of Anthropic's own servers are left out of the prompt.",
    ({ messages }) => messages,
  ),
  required(
    "max_tokens",
    "0 reads the prompt into the cache and says nothing. More than the context has room for is no error.",
    () => z.int(integerWords).min(0),
  ),
  honoured(
    "system",
    "A string or text blocks. A block that begins with `x-anthropic-billing-header:` is left out: its value changes with every request, and a cache of prompts would never find its beginning again.",
    ({ system }) => system,
  ),
  honoured("stream", "", () => z.boolean()),
  honoured("temperature", "0 to 1; profile `lean` takes up to 2.", (_, strict) => range(strict ? 1 : 2)),
  honoured("top_p", "0 to 1.", () => range(1)),
  honoured("top_k", "0 turns it off.", () => z.int(integerWords).min(0)),
  honoured(
    "stop_sequences",
    "The answer names the one that ended the message. Empty ones are ignored. Up to 1,000, of 65,536 characters in total.",
    (shapes) => shapes.stopSequences,
  ),
  honoured(
    "tools",
    "With `strict` and `defer_loading` (the tool stays out of the prompt until a `tool_reference` in a result names it). Tools of Anthropic's own servers (`web_search_…`) are left out; those whose schema only its models know (`bash_…`, `text_editor_…`, `computer_…`, `memory_…`) are refused.",
    ({ tools }) => tools,
  ),
  honoured(
    "tool_choice",
    "`auto`, `any`, `tool`, `none`, with `disable_parallel_tool_use`.",
    ({ toolChoice }) => toolChoice,
  ),
  honoured(
    "thinking",
    '`enabled` with `budget_tokens` (the thought is closed when it is spent), `adaptive`, `disabled`; `display: "omitted"` leaves the text out and keeps the thought in the signature, for the next turn; `updates` is `summarized` here.',
    ({ thinking }) => thinking,
  ),
  honoured(
    "output_config",
    "`effort`, which is the model's to use, and `format` with a JSON schema.",
    ({ outputConfig }) => outputConfig,
  ),
  honoured("output_format", "The older place of `output_config.format`.", ({ outputFormat }) => outputFormat),
  accepted("metadata", "Nothing here depends on who asks."),
  accepted("service_tier", "There is one tier."),
  accepted(
    "cache_control",
    "Here and on every block and tool: the cache finds the longest common beginning by itself; `usage` tells what it found.",
  ),
  accepted("context_management", "Histories are read as they come."),
  accepted("container", "There is none."),
  accepted("inference_geo", "It is where the server is."),
  accepted("mcp_servers", "No server is asked for its tools."),
  accepted("speed", "There is one."),
  accepted("diagnostics", "`usage` tells what the cache found."),
  accepted("fallbacks", "The server's own configuration names the models that stand in for others."),
  accepted("fallback_credit_token", ""),
  accepted("billing_policy", ""),
  accepted("user_profile_id", "Nothing here depends on who asks."),
  refused(
    "thread",
    "No conversation is kept here, even for models of other servers. The error has the code by which Anthropic's SDKs send the whole conversation instead.",
  ),
  refused("compaction", "No conversation is summarized here."),
  accepted("betas", "As the header `anthropic-beta`: any value will do."),
];

/** The checks of a body, by name; built once each. */
export function memberShapes(strict: boolean): ReadonlyMap<string, z.ZodType> {
  return strict ? (strictShapes ??= shapesOf(true)) : (looseShapes ??= shapesOf(false));
}

let strictShapes: ReadonlyMap<string, z.ZodType> | undefined;
let looseShapes: ReadonlyMap<string, z.ZodType> | undefined;

function shapesOf(strict: boolean): ReadonlyMap<string, z.ZodType> {
  const shapes = requestShapes(strict);
  return new Map(messageParameters.map(({ name, shape }) => [name, shape(shapes, strict)]));
}

function required(name: string, note: string, shape: MessageParameter["shape"]): MessageParameter {
  return { name, treatment: "honoured", note, required: true, shape };
}

function honoured(name: string, note: string, shape: MessageParameter["shape"]): MessageParameter {
  return { name, treatment: "honoured", note, required: false, shape };
}

function accepted(name: string, note: string): MessageParameter {
  return { name, treatment: "accepted", note, required: false, shape: () => z.unknown() };
}

function refused(name: string, note: string): MessageParameter {
  return { name, treatment: "refused", note, required: false, shape: () => z.unknown() };
}

/** A number from 0 on. */
function range(maximum: number): z.ZodType {
  const words = `${rangeMark}0..${maximum}`;
  return z.number().min(0, words).max(maximum, words);
}
