import type { Call, Format, NamedCall, ObjectCall, PlainFormat } from "../format.ts";
import { MarkerSet } from "./marker-set.ts";

/** What a marker in the visible text may be; one spelling may be several things. */
export interface Role {
  opensThought: boolean;
  closesThought: boolean;
  opensSection: boolean;
  /** The calls that it opens. */
  calls: Candidates | null;
  /** The same of calls without a marker, which it begins. */
  bareCalls: Candidates | null;
  closesCall: boolean;
  strips: boolean;
  /** Nothing behind it belongs to this text. */
  ends: boolean;
  /** Where the block that it opens, and that vanishes, ends. */
  dropTo: string | null;
}

/** Markers and what they are, by the marker's index in the set. */
export interface Markup {
  readonly set: MarkerSet;
  readonly roles: readonly Role[];
}

/** Calls of which one may stand somewhere, sorted for the decision which it is. */
export interface Candidates {
  readonly calls: readonly Call[];
  /** Their openers. */
  readonly openers: MarkerSet;
  readonly objects: readonly ObjectCall[];
  readonly named: NamedCall | undefined;
}

export interface MarkupOptions {
  /** Calls are read. */
  readonly calls: boolean;
  /** Markers that end the text. */
  readonly ends: readonly string[];
}

/** What the reading needs of a format, compiled once. */
export class Plan {
  readonly format: PlainFormat;
  /** Nothing in it is markup: every character, white space at the edges included, is content. */
  readonly isPlainText: boolean;
  readonly #markups = new Map<string, Markup>();
  readonly #sets = new WeakMap<object, Map<string, MarkerSet>>();
  readonly #behind = new Map<string | undefined, Candidates>();
  /** Calls without a marker, where the visible text begins. */
  readonly bare: Candidates;

  constructor(format: PlainFormat) {
    this.format = format;
    this.isPlainText = format.calls.length === 0 && !format.reasoning && !format.strip && !format.drop;
    this.bare = candidates(format.calls.filter((call) => call.bare === "start" || call.bare === "whole"));
  }

  /** The calls that this marker opens; undefined: those that need none within a section. */
  behind(opener: string | undefined): Candidates {
    let found = this.#behind.get(opener);
    if (!found) {
      const { calls } = this.format;
      found = candidates(calls.filter(({ open }) => (opener === undefined ? !open : open?.includes(opener))));
      this.#behind.set(opener, found);
    }
    return found;
  }

  /** All markers of the visible text. */
  markup(options: MarkupOptions): Markup {
    const key = (options.calls ? "calls " : "") + options.ends.join(" ");
    let markup = this.#markups.get(key);
    if (!markup) this.#markups.set(key, (markup = this.#compileMarkup(options)));
    return markup;
  }

  #compileMarkup({ calls, ends }: MarkupOptions): Markup {
    const { reasoning, section, strip = [], drop = [] } = this.format;
    const roles = new Map<string, Role>();
    const role = (marker: string): Role => {
      let found = roles.get(marker);
      if (!found) roles.set(marker, (found = noRole()));
      return found;
    };
    for (const open of reasoning?.open ?? []) role(open).opensThought = true;
    for (const close of reasoning?.close ?? []) role(close).closesThought = true;
    if (calls) {
      for (const open of section?.open ?? []) role(open).opensSection = true;
      for (const close of section?.close ?? []) role(close).closesCall = true;
      for (const call of this.format.calls) {
        if (section?.required !== true) for (const open of call.open ?? []) role(open).calls = this.behind(open);
        for (const close of call.close ?? []) role(close).closesCall = true;
      }
    }
    if (calls) {
      const anywhere = this.format.calls.filter((call) => call.bare === "anywhere");
      for (const open of anywhere.flatMap(bareOpeners)) role(open).bareCalls = candidates(anywhere);
    }
    for (const end of ends) role(end).ends = true;
    for (const token of strip) role(token).strips = true;
    for (const [open, close] of drop) role(open).dropTo = close;
    return { set: new MarkerSet([...roles.keys()]), roles: [...roles.values()] };
  }

  /**
   * A set of markers that is wanted again, under a name of its own. `part`: the part of the format, a call or its arguments, whose markers
   * they are; default: the whole.
   */
  set(name: string, markers: () => readonly string[], part: object = this): MarkerSet {
    let sets = this.#sets.get(part);
    if (!sets) this.#sets.set(part, (sets = new Map()));
    let set = sets.get(name);
    if (!set) sets.set(name, (set = new MarkerSet(markers())));
    return set;
  }

  /** What ends a call of this kind: its own closes, then those of the section. */
  closes(call: Call): MarkerSet {
    return this.set("closes", () => [...(call.close ?? []), ...(this.format.section?.close ?? [])], call);
  }
}

const plans = new WeakMap<Format, Plan>();

export function planOf(format: PlainFormat): Plan {
  let plan = plans.get(format);
  if (!plan) plans.set(format, (plan = new Plan(format)));
  return plan;
}

function candidates(calls: readonly Call[]): Candidates {
  return {
    calls,
    openers: new MarkerSet(calls.flatMap(({ open }) => open ?? [])),
    objects: calls.filter((call) => call.form === "object"),
    named: calls.find((call) => call.form === "named"),
  };
}

/** What a call without a marker begins with. */
function bareOpeners(call: Call): string[] {
  const fences = call.fence === true ? ["```json\n", "```\n"] : [];
  return [call.list === "array" || call.form === "named" ? "[" : "{", ...fences];
}

function noRole(): Role {
  return {
    opensThought: false,
    closesThought: false,
    opensSection: false,
    calls: null,
    bareCalls: null,
    closesCall: false,
    strips: false,
    ends: false,
    dropTo: null,
  };
}
