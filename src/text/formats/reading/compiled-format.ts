import type { CallSyntax, NamedCall, ObjectCall, PlainFormat } from "../format.ts";
import { MarkerSet } from "./marker-set.ts";

/** What a marker means in visible text. One spelling may have several roles. */
export interface MarkerRole {
  opensReasoning: boolean;
  closesReasoning: boolean;
  opensSection: boolean;
  /** The calls that it opens. */
  calls: CallCandidates | null;
  /** The calls without an opener that begin with it. */
  bareCalls: CallCandidates | null;
  closesCall: boolean;
  isStripped: boolean;
  /** It ends the text of this format. */
  ends: boolean;
  /** It opens a block that is removed; this marker closes the block. */
  dropTo: string | null;
}

/** The markers of visible text, and their roles by index. */
interface MarkerTable {
  readonly set: MarkerSet;
  readonly roles: readonly MarkerRole[];
}

/** The calls that are possible at one point, grouped for the decision between them. */
export interface CallCandidates {
  readonly calls: readonly CallSyntax[];
  /** Their openers. */
  readonly openers: MarkerSet;
  readonly objects: readonly ObjectCall[];
  readonly named: NamedCall | undefined;
}

/** A format's marker sets, compiled once. */
export class CompiledFormat {
  readonly description: PlainFormat;
  /** The format has no markup: every character, including white space at the ends, is content. */
  readonly isPlainText: boolean;
  /** The calls without an opener that are allowed where the visible text begins. */
  readonly bare: CallCandidates;
  readonly #tables = new Map<string, MarkerTable>();
  readonly #sets = new WeakMap<object, Map<string, MarkerSet>>();
  readonly #callsAfter = new Map<string | undefined, CallCandidates>();

  constructor(description: PlainFormat) {
    const { calls, reasoning, strip, drop } = description;
    this.description = description;
    this.isPlainText = calls.length === 0 && !reasoning && !strip && !drop;
    this.bare = candidates(calls.filter(({ bare }) => bare === "start" || bare === "whole"));
  }

  /** The calls that `opener` opens; for undefined, those that need no opener within a section. */
  callsAfter(opener: string | undefined): CallCandidates {
    let found = this.#callsAfter.get(opener);
    if (!found) {
      const { calls } = this.description;
      found = candidates(calls.filter(({ open }) => (opener === undefined ? !open : open?.includes(opener))));
      this.#callsAfter.set(opener, found);
    }
    return found;
  }

  /** The markers of visible text. `calls`: calls are read; `ends`: markers that end the text. */
  markers(calls: boolean, ends: readonly string[]): MarkerTable {
    const key = (calls ? "calls " : "") + ends.join(" ");
    let table = this.#tables.get(key);
    if (!table) this.#tables.set(key, (table = this.#compileMarkers(calls, ends)));
    return table;
  }

  #compileMarkers(readCalls: boolean, ends: readonly string[]): MarkerTable {
    const { calls, reasoning, section, strip = [], drop = [] } = this.description;
    const roles = new Map<string, MarkerRole>();
    const role = (marker: string): MarkerRole => {
      let found = roles.get(marker);
      if (!found) roles.set(marker, (found = { ...noRole }));
      return found;
    };
    for (const open of reasoning?.open ?? []) role(open).opensReasoning = true;
    for (const close of reasoning?.close ?? []) role(close).closesReasoning = true;
    if (readCalls) {
      for (const open of section?.open ?? []) role(open).opensSection = true;
      for (const close of section?.close ?? []) role(close).closesCall = true;
      for (const call of calls) {
        if (section?.required !== true) for (const open of call.open ?? []) role(open).calls = this.callsAfter(open);
        for (const close of call.close ?? []) role(close).closesCall = true;
      }
      const anywhere = calls.filter(({ bare }) => bare === "anywhere");
      for (const open of anywhere.flatMap(bareOpeners)) role(open).bareCalls = candidates(anywhere);
    }
    for (const end of ends) role(end).ends = true;
    for (const token of strip) role(token).isStripped = true;
    for (const [open, close] of drop) role(open).dropTo = close;
    return { set: new MarkerSet([...roles.keys()]), roles: [...roles.values()] };
  }

  /** A marker set that is compiled once per `name` and `part`, the part of the format that it belongs to (default: the whole format). */
  set(name: string, markers: () => readonly string[], part: object = this): MarkerSet {
    let sets = this.#sets.get(part);
    if (!sets) this.#sets.set(part, (sets = new Map()));
    let set = sets.get(name);
    if (!set) sets.set(name, (set = new MarkerSet(markers())));
    return set;
  }

  /** The close markers of a call, without those of its section. */
  callCloses(call: CallSyntax): MarkerSet {
    return this.set("close", () => call.close ?? [], call);
  }

  /** What ends a call: its own close markers, then those of the section. */
  closes(call: CallSyntax): MarkerSet {
    return this.set("closes", () => [...(call.close ?? []), ...(this.description.section?.close ?? [])], call);
  }

  /** The close markers of the section, then those of all calls. */
  allCloses(): MarkerSet {
    const { section, calls } = this.description;
    return this.set("all closes", () => [...(section?.close ?? []), ...calls.flatMap(({ close }) => close ?? [])]);
  }
}

const compiled = new WeakMap<PlainFormat, CompiledFormat>();

export function compileFormat(format: PlainFormat): CompiledFormat {
  let found = compiled.get(format);
  if (!found) compiled.set(format, (found = new CompiledFormat(format)));
  return found;
}

function candidates(calls: readonly CallSyntax[]): CallCandidates {
  return {
    calls,
    openers: new MarkerSet(calls.flatMap(({ open }) => open ?? [])),
    objects: calls.filter((call) => call.form === "object"),
    named: calls.find((call) => call.form === "named"),
  };
}

/** What a call without an opener begins with. */
function bareOpeners(call: CallSyntax): string[] {
  const fences = call.fence === true ? ["```json\n", "```\n"] : [];
  return [call.list === "array" || call.form === "named" ? "[" : "{", ...fences];
}

const noRole: MarkerRole = {
  opensReasoning: false,
  closesReasoning: false,
  opensSection: false,
  calls: null,
  bareCalls: null,
  closesCall: false,
  isStripped: false,
  ends: false,
  dropTo: null,
};
