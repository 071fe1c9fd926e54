import type { NamedCall, PlainFormat, TaggedArgs } from "../format.ts";
import { headEnds, notInHeads, openersInValue, valueFollowers } from "../reading/read-tagged-value.ts";
import { isSpace } from "../reading/cursor.ts";
import { MarkerSet } from "../reading/marker-set.ts";
import { complement, codePointOf, type CodePoints, oneCodePoint, union } from "./code-points.ts";
import { chars, choice, empty, type GrammarExpression, literal, never, sequence } from "./expression.ts";
import type { Grammar } from "./grammar.ts";

/** What the texts of a call's values depend on. */
export interface TaggedTextSyntax {
  readonly format: PlainFormat;
  readonly call: NamedCall;
  readonly args: TaggedArgs;
  /** The close of the value. */
  readonly close: string;
  /** The parameters that the tools declare, or null if any name is a parameter. */
  readonly keys: readonly string[] | null;
}

/**
 * What decides, of the text before, what may follow. The value ends at a close only in "text".
 *
 * - start: `read` may be the beginning of a CDATA section;
 * - text: `read` may be the beginning of a marker;
 * - closed: after a close and white space, `read` may be the beginning of what may follow it;
 * - key: after the opener of a parameter, `read` may be the beginning of a declared name;
 * - name: in the head of a call, `read` may be the beginning of its end;
 * - opened: after the head of a call and white space, `read` may be the beginning of what makes it a call;
 * - left: after a call in the value and white space, `read` may be the beginning of the close of its section.
 */
interface TextState {
  readonly place: "start" | "text" | "closed" | "key" | "name" | "opened" | "left";
  readonly read: string;
  /** plain: no close of the call has come; ended: one has come; nested: in a call that the value contains. */
  readonly mode: "plain" | "ended" | "nested";
  /** name: a character has come. opened, left: the last white space was the end of a line. */
  readonly flag: boolean;
}

/** Where characters lead. */
interface Step {
  readonly to: TextState;
  readonly set: CodePoints;
}

/** What `#memo` has computed. */
const beforeKeys = new WeakMap<PlainFormat, Map<string, unknown>>();

const cdata = "<![CDATA[";

/**
 * The texts that the parser of tagged values (`readValueText`) reads as one value, as an automaton over characters. It is conservative: of
 * a call in the value, it allows only complete ones, and it forbids every parameter's opener that the parser reads in some cases.
 */
export class TaggedText {
  readonly #syntax: TaggedTextSyntax;
  readonly #edge: string;
  readonly #end: string;
  readonly #openers: readonly string[];
  readonly #opens: readonly string[];
  readonly #closes: readonly string[];
  readonly #callCloses: readonly string[];
  readonly #followers: readonly string[];
  readonly #callFollowers: readonly string[];
  /** What is compared with the text after the head of a call. */
  readonly #afterHead: readonly string[];
  readonly #headEnds: readonly string[];
  readonly #markers: readonly string[];
  /** The first characters of markers. */
  readonly #starts: ReadonlySet<string>;
  /** The characters that may lead to a state of their own. */
  readonly #named: readonly string[];
  /** The markers that have a meaning in each mode. */
  readonly #search: Readonly<Record<TextState["mode"], MarkerSet>>;
  readonly #headSearch: MarkerSet;
  readonly #keys: readonly string[];
  readonly #keyEnd: string;
  readonly #id: string;
  /** The text of a close before its key, if closes contain the key. */
  readonly #stem: string | null;
  /** What may follow `#stem` in a marker. */
  readonly #tails: readonly string[];
  /** Identifies the rules that are the same for all keys. */
  readonly #sharedId: string;

  constructor(syntax: TaggedTextSyntax) {
    const { format, call, args, close, keys } = syntax;
    this.#syntax = syntax;
    this.#edge = args.trim === "newline" ? "\n" : "";
    this.#end = this.#edge + close;
    this.#openers = openersInValue(args);
    this.#opens = call.open ?? [];
    this.#callCloses = withoutLonger(call.close ?? []);
    this.#closes = withoutLonger([...this.#callCloses, ...(format.section?.close ?? [])]);
    const [open = args.open, ...others] = valueFollowers(format, args.open, close, this.#closes);
    this.#followers = [open, ...withoutLonger(others)];
    this.#callFollowers = [args.open, ...(args.jsonBody === true ? ["{"] : []), ...this.#callCloses];
    this.#headEnds = headEnds(call);
    const beforeKey = args.close.indexOf("{key}");
    this.#stem = beforeKey < 0 ? null : args.close.slice(0, beforeKey);
    this.#afterHead = [...this.#callFollowers, ...(this.#stem === null ? [] : [close, ...this.#closes])];
    this.#markers = [this.#end, close, ...this.#openers, ...this.#opens, ...this.#closes];
    this.#search = {
      plain: new MarkerSet(this.#markers),
      ended: new MarkerSet([this.#end, close, ...this.#opens]),
      nested: new MarkerSet([...this.#opens, ...this.#callCloses]),
    };
    this.#starts = new Set(this.#markers.flatMap(([first = ""]) => first));
    this.#keys = keys ?? [];
    this.#keyEnd = args.keyEnd + (args.valueOpen ?? (args.trim === "newline" ? "\n" : ""));
    this.#named = [
      ...new Set([
        ...[...this.#markers, ...this.#followers, ...this.#callFollowers, ...this.#headEnds].join(""),
        ...[...this.#keys, this.#keyEnd, cdata].join(""),
        ..."\t\n\v\f\r <>{}",
      ]),
    ];
    this.#headSearch = new MarkerSet([...this.#headEnds, ...this.#markers.flatMap(partInHead)]);
    this.#id = `tagged ${JSON.stringify([this.#markers, this.#followers, keys])}`;
    this.#tails = [...new Set([close, ...this.#closes])].flatMap((marker) =>
      this.#stem !== null && marker.startsWith(this.#stem) ? [marker.slice(this.#stem.length)] : [],
    );
    this.#sharedId = `tagged ${JSON.stringify([args.close, this.#opens, this.#closes, this.#callFollowers, this.#headEnds])}`;
  }

  /** Whether the automaton can follow the parser. Not if a marker contains another one, or if a whole one may be in the head of a call. */
  get isExact(): boolean {
    const { close, args } = this.#syntax;
    const stem = this.#stem;
    const markers = [close, args.open, ...this.#opens, ...this.#closes];
    if (!markers.every((marker) => [...marker].some((character) => notInHeads.has(codePointOf(character)))))
      return false;
    if (stem === null) {
      return markers.every((one) => markers.every((other) => one === other || !one.includes(other)));
    }
    // All markers may begin with the opener of a parameter, and none may begin anywhere else in one.
    const rests = [close, ...this.#opens, ...this.#closes].map((marker) => marker.slice(args.open.length));
    const isOther = rests.every((one, i) => rests.every((other, k) => i === k || !one.startsWith(other)));
    const [first = ""] = stem;
    return (
      stem.startsWith(args.open) &&
      this.#edge === "" &&
      this.#openers.length === 0 &&
      markers.every((marker) => marker.startsWith(args.open)) &&
      isOther &&
      rests.every((rest) => !rest.includes(first)) &&
      !Array.from(stem).some((_, i) => i > 0 && stem.startsWith(stem.slice(i)))
    );
  }

  /** The text after the value's edge, up to and including its close. */
  expression(grammar: Grammar): GrammarExpression {
    if (this.#stem !== null) return this.#withKey(grammar);
    const state = (at: TextState): GrammarExpression =>
      grammar.shared(`${this.#id} ${keyOf(at)}`, "text", () => {
        const ends = this.#named.filter((character) => this.#ends(at, character)).map(literal);
        const steps = this.#steps(at).map(({ to, set }) => sequence(chars(set), state(to)));
        return choice(...ends, ...steps);
      });
    return state(this.#start);
  }

  /**
   * The same for a format whose closes contain the key. An automaton for each key would be too large. So the rules for the text up to the
   * stem, after which the key matters, are the same for all keys, and each key has rules only for what follows a stem.
   */
  #withKey(grammar: Grammar): GrammarExpression {
    /** The text from a state up to the first stem, if that leads to the state `target`. */
    const upTo = (at: TextState, target: string): GrammarExpression =>
      grammar.shared(`${this.#sharedId} ${keyOf(at)} to ${target}`, "text", () =>
        choice(
          ...this.#stepsBeforeKey(at).map(({ to, set }) => {
            if (this.#isAtKey(to)) return keyOf(to) === target ? chars(set) : never;
            return this.#keysAfter(to).has(target) ? sequence(chars(set), upTo(to, target)) : never;
          }),
        ),
      );
    const state = (at: TextState): GrammarExpression =>
      grammar.shared(`${this.#id} ${keyOf(at)}`, "value", () =>
        choice(...[...this.#keysAfter(at)].map(([id, target]) => sequence(upTo(at, id), afterStem(target)))),
      );
    const afterStem = (at: TextState): GrammarExpression =>
      grammar.shared(`${this.#id} ${keyOf(at)}`, "tail", () => {
        const whole = this.#tails.flatMap((tail) => {
          const characters = [...tail];
          const last = characters.pop() ?? "";
          let before: TextState | null = at;
          for (const character of characters) before &&= this.#step(before, character);
          if (before === null) return [];
          const to = this.#step(before, last);
          const rest = choice(this.#ends(before, last) ? empty : never, to === null ? never : state(to));
          return [sequence(literal(tail), rest)];
        });
        // After any other text, the state does not depend on how much of a tail it begins with.
        const other = [null, ...this.#starts].map((last) => {
          const to = this.#step(at, last);
          return to === null ? never : sequence(this.#noTail(grammar, this.#tails, last), state(to));
        });
        return choice(...whole, ...other);
      });
    return state(this.#start);
  }

  /** The text after a stem up to the first character that no tail continues with: `last`, or (null) one that no marker begins with. */
  #noTail(grammar: Grammar, tails: readonly string[], last: string | null): GrammarExpression {
    const next = [...new Set(tails.map(([character = ""]) => character))];
    const rests = next.map((character) =>
      tails.flatMap((tail) => (tail.startsWith(character) && tail !== character ? [tail.slice(character.length)] : [])),
    );
    const build = (): GrammarExpression =>
      choice(
        last === null ? chars(complement(union(...[...next, ...this.#starts].map(oneCodePoint)))) : literal(last),
        ...next.map((character, i) => {
          const rest = rests[i] ?? [];
          return rest.length === 0 ? never : sequence(literal(character), this.#noTail(grammar, rest, last));
        }),
      );
    // The rest of the key is in no other rule.
    const isOwn = tails !== this.#tails && tails.some((tail) => this.#syntax.close.endsWith(tail));
    return isOwn
      ? build()
      : grammar.shared(`no tail ${JSON.stringify([tails, last, ...this.#starts])}`, "other", build);
  }

  /** Whether the key matters for what follows. */
  #isAtKey({ place, mode, read }: TextState): boolean {
    return read === this.#stem && (place !== "text" || mode !== "nested");
  }

  /** The first such states that a text leads to from this one. They and all states between are the same for all keys. */
  #keysAfter(from: TextState): ReadonlyMap<string, TextState> {
    return this.#memo("keys", from, () => {
      const found = new Map<string, TextState>();
      const targets = new Map<string, TextState>();
      const add = (at: TextState): void => {
        for (const { to } of this.#stepsBeforeKey(at)) (this.#isAtKey(to) ? targets : found).set(keyOf(to), to);
      };
      add(from);
      for (const at of found.values()) add(at);
      return targets;
    });
  }

  #stepsBeforeKey(at: TextState): readonly Step[] {
    return this.#memo("steps", at, () => this.#steps(at));
  }

  /** What is the same for all keys is computed once per format. */
  #memo<Value>(kind: string, at: TextState, make: () => Value): Value {
    let known = beforeKeys.get(this.#syntax.format);
    if (known === undefined) beforeKeys.set(this.#syntax.format, (known = new Map<string, unknown>()));
    const id = `${kind} ${this.#sharedId} ${keyOf(at)}`;
    if (!known.has(id)) known.set(id, make());
    return known.get(id) as Value;
  }

  /** Where one more character leads, by the characters that lead there. */
  #steps(at: TextState): readonly Step[] {
    // Most characters lead to the same state as those that are in no marker.
    const usual = this.#step(at, null);
    const groups = new Map<string, { to: TextState | null; characters: CodePoints[] }>();
    for (const character of this.#named) {
      const to = this.#step(at, character);
      const key = to === null ? "" : keyOf(to);
      if (usual !== null && key === keyOf(usual)) continue;
      const group = groups.get(key);
      if (group) group.characters.push(oneCodePoint(character));
      else groups.set(key, { to, characters: [oneCodePoint(character)] });
    }
    const unusual = [...groups.values()].map(({ to, characters }) => ({ to, set: union(...characters) }));
    const steps = unusual.flatMap(({ to, set }) => (to === null ? [] : [{ to, set }]));
    if (usual === null) return steps;
    return [...steps, { to: usual, set: complement(union(...unusual.map(({ set }) => set))) }];
  }

  /** Whether the parser reads a value of this text. */
  accepts(text: string): boolean {
    const characters = [...text, ...this.#end];
    let at: TextState | null = this.#start;
    for (const [i, character] of characters.entries()) {
      if (i === characters.length - 1) return this.#ends(at, character);
      at = this.#step(at, character);
      if (at === null) return false;
    }
    return false;
  }

  get #start(): TextState {
    const isCdata = this.#syntax.args.cdata === true;
    return { place: isCdata ? "start" : "text", read: isCdata ? "" : this.#edge, mode: "plain", flag: false };
  }

  /** Whether this character completes the close that ends the value. */
  #ends({ place, read, mode }: TextState, character: string): boolean {
    const isText = place === "text" || place === "opened" || place === "left";
    return isText && mode !== "nested" && (read + character).endsWith(this.#end);
  }

  /** The state after one more character (null: one that is in no marker), or null if the text is not one value. */
  #step(at: TextState, character: string | null): TextState | null {
    switch (at.place) {
      case "start":
        if (character === null || !cdata.startsWith(at.read + character)) {
          return this.#resume("plain", this.#edge + at.read, character);
        }
        return at.read + character === cdata ? null : { ...at, read: at.read + character };
      case "text":
        return this.#stepText(at, character);
      case "closed":
        return this.#stepClosed(at, character);
      case "key":
        return this.#stepKey(at, character);
      case "name":
        return this.#stepName(at, character);
      case "opened":
        return this.#stepOpened(at, character);
      case "left":
        return this.#stepLeft(at, character);
    }
  }

  #text(mode: TextState["mode"], reached: string | null): TextState {
    return {
      place: "text",
      read: reached === null ? "" : markerPrefix(this.#search[mode], reached),
      mode,
      flag: false,
    };
  }

  /** What seemed to be something else was text, which `character` (null: one that is in no marker) continues. */
  #resume(mode: TextState["mode"], read: string, character: string | null): TextState | null {
    return this.#stepText(this.#text(mode, read), character);
  }

  #stepText({ read, mode }: TextState, character: string | null): TextState | null {
    if (character === null) return this.#text(mode, null);
    const reached = read + character;
    const has = (marker: string): boolean => reached.endsWith(marker);
    // After a close of the call, another call would begin; in a call, a second one is not described.
    if (this.#opens.some(has)) return mode === "plain" ? { place: "name", read: "", mode, flag: false } : null;
    if (mode === "nested") return this.#callCloses.some(has) ? this.#left : this.#text(mode, reached);
    if (has(this.#syntax.close)) {
      // A call without a close ends with its last parameter.
      return { place: "closed", read: "", mode: this.#closes.length === 0 ? "ended" : mode, flag: false };
    }
    if (mode === "plain" && this.#closes.some(has)) return this.#text("ended", null);
    if (mode === "plain" && this.#openers.some(has)) {
      return this.#syntax.keys === null ? null : { place: "key", read: "", mode, flag: false };
    }
    return this.#text(mode, reached);
  }

  #stepClosed(at: TextState, character: string | null): TextState | null {
    const { args, close } = this.#syntax;
    // After the close, the opener of a parameter ends the value, unless a longer marker begins with it.
    const isParameter = at.read.startsWith(args.open);
    if (character === null) return isParameter ? null : this.#text(at.mode, null);
    if (at.read === "" && isSpace(codePointOf(character))) return at;
    const read = at.read + character;
    if (read === close) return { ...at, read: "" };
    if (this.#followers.some((marker) => marker !== read && marker.startsWith(read))) return { ...at, read };
    if (read === args.open || isParameter) return this.#closes.includes(read) ? this.#text("ended", null) : null;
    return this.#followers.includes(read) ? this.#text("ended", null) : this.#resume(at.mode, at.read, character);
  }

  #stepKey(at: TextState, character: string | null): TextState | null {
    if (character === null) return this.#text(at.mode, null);
    const read = at.read + character;
    const heads = this.#keys.map((key) => key + this.#keyEnd);
    if (heads.includes(read)) return null;
    if (heads.some((head) => head.startsWith(read))) return { ...at, read };
    // The parser skips white space around a name, and before the opener of the value.
    const isName = at.read === "" || this.#keys.includes(at.read);
    const isHead =
      this.#syntax.args.valueOpen !== undefined &&
      this.#keys.includes(at.read.slice(0, -this.#syntax.args.keyEnd.length));
    if (isSpace(codePointOf(character)) && (isHead || (isName && character !== "\n"))) return at;
    return this.#resume(at.mode, at.read, character);
  }

  #stepName(at: TextState, character: string | null): TextState | null {
    if (character === null) return { ...at, read: "", flag: true };
    const reached = at.read + character;
    const end = this.#headEnds.find((marker) => reached.endsWith(marker));
    if (end !== undefined && (at.flag || reached.length > end.length)) {
      const kept = this.#syntax.call.headEndKept?.includes(end) === true;
      if (kept) return this.#enter(end);
      return { place: "opened", read: "", mode: at.mode, flag: this.#starts.has("\n") && end.endsWith("\n") };
    }
    const read = markerPrefix(this.#headSearch, reached);
    const passed = Array.from(reached.slice(0, reached.length - read.length));
    if (passed.some((part) => notInHeads.has(codePointOf(part)))) return this.#resume(at.mode, at.read, character);
    return { ...at, read, flag: at.flag || passed.length > 0 };
  }

  #stepOpened(at: TextState, character: string | null): TextState | null {
    // The opener of a parameter makes it a call, unless a longer marker begins with it that does not.
    const { open } = this.#syntax.args;
    const isCall = at.read.startsWith(open);
    // Directly after a head, other closes than these are not described.
    if (isCall && at.read !== open && !this.#afterHead.some((marker) => marker.startsWith(at.read + character)))
      return null;
    const mode = isCall ? "nested" : at.mode;
    if (character === null) return this.#text(mode, null);
    if (at.read === "" && isSpace(codePointOf(character)))
      return { ...at, flag: this.#starts.has("\n") && character === "\n" };
    const read = at.read + character;
    if (this.#afterHead.some((marker) => marker !== read && marker.startsWith(read))) return { ...at, read };
    if (this.#callFollowers.includes(read)) return this.#enter(read);
    const isClose = this.#afterHead.includes(read);
    return this.#resume(isClose ? at.mode : mode, (at.flag ? "\n" : "") + at.read, character);
  }

  #stepLeft(at: TextState, character: string | null): TextState | null {
    if (character === null) return this.#text(at.mode, null);
    if (at.read === "" && isSpace(codePointOf(character)))
      return { ...at, flag: this.#starts.has("\n") && character === "\n" };
    const read = at.read + character;
    if (this.#closes.includes(read)) return this.#left;
    if (this.#closes.some((marker) => marker.startsWith(read))) return { ...at, read };
    return this.#resume(at.mode, (at.flag ? "\n" : "") + at.read, character);
  }

  /** A call begins in the value, with a parameter or with its close. */
  #enter(follower: string): TextState {
    return this.#callCloses.includes(follower) ? this.#left : this.#text("nested", null);
  }

  get #left(): TextState {
    return { place: "left", read: "", mode: "plain", flag: false };
  }
}

function keyOf({ place, mode, flag, read }: TextState): string {
  return `${place} ${mode} ${flag ? 1 : 0} ${read}`;
}

/** The markers without those that contain another one. */
function withoutLonger(markers: readonly string[]): readonly string[] {
  return markers.filter((one) => markers.every((other) => one === other || !one.includes(other)));
}

/** The beginning of a marker that may be in the head of a call, and one more character, if it begins in one. */
function partInHead(marker: string): readonly string[] {
  const length = [...marker].findIndex((character) => notInHeads.has(codePointOf(character)));
  return length > 0 ? [marker.slice(0, length + 1)] : [];
}

/** The longest beginning of a marker, shorter than the marker, that the text ends with. */
function markerPrefix(set: MarkerSet, text: string): string {
  let node = 0;
  for (let i = 0; i < text.length; i++) node = set.step(node, text.charCodeAt(i));
  const length = set.at(node) >= 0 ? 0 : (set.depth[node] ?? 0);
  return length === 0 ? "" : text.slice(-length);
}
