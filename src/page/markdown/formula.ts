import temml from "temml";

/** A longer formula is not read. In characters. */
const maxLength = 4000;
/** The most expansions of macros in one formula. */
const maxExpansions = 500;
/** The most elements of one formula, and the deepest level: browsers lay out what is nested with several passes for each level. */
const maxElements = 4000;
const maxDepth = 40;
/** Of a space, a rule or a shift, in em. */
const maxSize = 30;

/** Definitions of macros: a few of them expand to texts of any length. */
const definition =
  /\\(?:[egx]?def|(?:re|provide)?newcommand|renewcommand|providecommand|let|futurelet|global|DeclareMathOperator)(?![a-zA-Z])/;

/** An element of MathML, or a text. */
export type MathPart = MathElement | string;

export interface MathElement {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly style: Readonly<Record<string, string>>;
  readonly children: readonly MathPart[];
}

/** What Temml builds: an element, a text, a list of them, or something that no formula needs, such as a link. */
interface TemmlNode {
  readonly type?: string;
  readonly text?: string;
  readonly attributes?: Readonly<Record<string, unknown>>;
  readonly classes?: readonly string[];
  readonly style?: Readonly<Record<string, unknown>>;
  readonly children?: readonly TemmlNode[];
}

/**
 * Reads a formula in LaTeX. Returns its MathML, in which only what is named in this file occurs. undefined: it is not one that can be read, or
 * it is too long. The time is bounded by limits of its length, its expansions and its elements.
 *
 * @param display Whether it has a line of its own, where sums have their limits above and below.
 */
export function readFormula(tex: string, display: boolean): MathElement | undefined {
  if (tex.length > maxLength || definition.test(tex)) return undefined;
  try {
    const tree = temml.__renderToMathMLTree(tex, {
      displayMode: display,
      throwOnError: true,
      strict: false,
      trust: false,
      maxExpand: maxExpansions,
      maxSize: [maxSize, maxSize],
      wrap: display ? "none" : "tex",
    }) as TemmlNode;
    const [math, ...others] = new AllowedParts().partsOf(tree, 0);
    return typeof math === "object" && others.length === 0 ? math : undefined;
  } catch {
    // No LaTeX, or not what is allowed.
    return undefined;
  }
}

const elements: ReadonlySet<string> = new Set(
  `math mrow mi mn mo mtext mspace ms mfrac msqrt mroot mstyle mpadded mphantom msub msup msubsup munder mover munderover mmultiscripts
  mprescripts none mtable mtr mtd menclose merror`.split(/\s+/),
);

/** Attributes whose values are one word, a number or a length. */
const attributes: ReadonlySet<string> = new Set(
  `display displaystyle scriptlevel mathvariant mathcolor mathbackground form stretchy fence separator symmetric largeop movablelimits minsize
  maxsize lspace rspace accent accentunder linethickness width height depth voffset columnspan rowspan notation`.split(
    /\s+/,
  ),
);

const styles: ReadonlySet<string> = new Set([
  "color",
  "padding",
  "paddingLeft",
  "paddingRight",
  "textAlign",
  "width",
  "border",
  "borderTop",
  "borderBottom",
  "borderLeft",
  "borderRight",
]);

/** Letters, digits, lengths and colours: no address, no function, no second declaration. */
const plainValue = /^[\w#.%+ -]{0,40}$/;

/** Takes over what is allowed. Throws for everything else, and for a formula that is too large. */
class AllowedParts {
  #count = 0;

  partsOf(node: TemmlNode, depth: number): MathPart[] {
    if (node.text !== undefined) return [String(node.text)];
    const { type, children = [], classes = [] } = node;
    const inside = (): MathPart[] => children.flatMap((child) => this.partsOf(child, depth + 1));
    if (++this.#count > maxElements || depth > maxDepth) throw new RangeError("The formula is too large.");
    // The number of an equation is not counted by this page.
    if (type === undefined && classes.includes("tml-eqn")) return [];
    // A list of elements, or something of HTML, of which only the elements inside are taken.
    if (type === undefined) return inside();
    if (!elements.has(type)) throw new TypeError(`The formula has the element ${type.slice(0, 40)}.`);
    const own = plainMembers(node.attributes, attributes);
    const names = classes
      .flatMap((name) => name.split(" "))
      .filter((name) => /^(?:tml-[a-z-]+|(?:up|down)strike)$/.test(name));
    return [
      {
        name: type,
        attributes: { ...own, ...(names.length > 0 && { class: names.join(" ") }) },
        style: plainMembers(node.style, styles),
        children: inside(),
      },
    ];
  }
}

function plainMembers(
  members: Readonly<Record<string, unknown>> | undefined,
  names: ReadonlySet<string>,
): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(members ?? {})) {
    if (!names.has(name)) continue;
    const text = String(value);
    const size = Number.parseFloat(/(?<![\d.])-?[\d.]+(?=em|ex)/.exec(text)?.[0] ?? "0");
    if (!plainValue.test(text) || Math.abs(size) > maxSize)
      throw new RangeError(`The formula has ${name} ${text.slice(0, 40)}.`);
    kept[name] = text;
  }
  return kept;
}
