import type { Exchange } from "../rules/exchange.ts";
import type { Form } from "../rules/form.ts";
import type { ProfileName } from "../rules/profile/profile-rule.ts";
import type { Concern, Finding, Rule, Severity } from "../rules/rule.ts";

/** One thing that was judged: a probe, a live scenario, or a capture. */
export interface Judgement {
  readonly id: string;
  readonly about: string;
  readonly exchange?: Exchange;
  readonly findings: readonly Finding[];
  readonly shown: readonly string[];
  readonly notShown?: string;
}

/** The outcome of a check, which every reporter writes in its own way. */
export interface Report {
  /** What was checked: a URL, or a capture's file. */
  readonly subject: string;
  readonly model?: string;
  /** The form that was demanded. */
  readonly profile?: ProfileName;
  /** What was asked in another way than usual; each a sentence without its full stop. */
  readonly remarks: readonly string[];
  /** The forms of the answers that were seen: chat streams, responses, messages. */
  readonly forms: readonly Form[];
  readonly judgements: readonly Judgement[];
  readonly rules: readonly RuleOutcome[];
  /** Mistakes by severity: rules that are broken by the same mistake count once. */
  readonly counts: Readonly<Record<Severity | "passed" | "not shown", number>>;
}

export interface RuleOutcome extends Rule {
  readonly status: "broken" | "passed" | "not shown";
  /** Where it is broken; one entry a place. */
  readonly evidence: readonly Evidence[];
  /** The id of another broken rule, if both show the same mistake, which is counted there. */
  readonly partOf?: string;
}

export interface Evidence {
  /** The judgement's id. */
  readonly in: string;
  readonly found: string;
  /** Offsets into the body of that exchange's response. */
  readonly start: number;
  readonly end: number;
  /** See `Violation`. */
  readonly member?: string;
  /** What Truewire sends in place of the event or the body with this violation; "" for nothing. Absent if that is the same or unknown. */
  readonly right?: string;
  /** The lines of the body around the offending place, and that place in it; absent where there is no body to show. */
  readonly excerpt?: { readonly before: string; readonly offending: string; readonly after: string };
}

/** Concerns in the order of a report, the most harmful first. */
export const concerns: readonly Concern[] = [
  "the stream cannot be read",
  "text is lost or wrong",
  "tool calls break",
  "the answer seems to end wrongly",
  "errors look like answers",
  "choices mix",
  "requests are misunderstood",
  "token counts are wrong",
  "log probabilities are wrong",
  "it is not the form that was demanded",
  "it differs from OpenAI",
  "it differs from Anthropic",
  "it differs from Ollama",
];

const severities: readonly Severity[] = ["error", "warning", "note"];

/** A mistake of the server: the broken rule that says most about it, and the other rules that it breaks. */
export interface Mistake extends RuleOutcome {
  readonly others: readonly RuleOutcome[];
}

/** The mistakes that a report found, the most harmful first: by severity, then by concern, then by the number of clients that break. */
export function mistakesOf({ rules }: Pick<Report, "rules">): Mistake[] {
  return rules
    .filter(({ status, partOf }) => status === "broken" && partOf === undefined)
    .map((rule) => ({ ...rule, others: rules.filter(({ partOf }) => partOf === rule.id) }))
    .toSorted(
      (a, b) =>
        severities.indexOf(a.severity) - severities.indexOf(b.severity) ||
        concerns.indexOf(a.concern) - concerns.indexOf(b.concern) ||
        b.breaks.length - a.breaks.length,
    );
}

/** The mistakes of one concern, the worst first. */
export function mistakesBy(report: Report, concern: Concern): Mistake[] {
  return mistakesOf(report).filter((mistake) => mistake.concern === concern);
}

/** Maximum number of mistakes that a verdict names. */
const namedInVerdict = 3;

/** The mistakes that matter most: errors and warnings, at most three. Empty if all mistakes are in the list anyway. */
export function worstOf(report: Report): Mistake[] {
  const harmful = mistakesOf(report).filter(({ severity }) => severity !== "note");
  return harmful.slice(0, namedInVerdict);
}

/** A concern as a heading. */
export function heading(concern: Concern): string {
  return concern.charAt(0).toUpperCase() + concern.slice(1);
}

/** One line that sums a report up. */
export function reportSummary({ counts, forms, profile, remarks }: Report): string {
  const numbers = [
    plural(counts.error, "error"),
    plural(counts.warning, "warning"),
    plural(counts.note, "note"),
    `${counts.passed} rules passed`,
    `${counts["not shown"]} not shown`,
  ];
  const form = forms.length === 0 ? "" : `; answers in the form "${forms.join('", "')}"`;
  const demanded = profile === undefined ? "" : `; required: the form "${profile}"`;
  return [`${numbers.join(", ")}${form}${demanded}`, ...remarks].join("; ");
}

function plural(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}

/** An event of `POST /admin/check`: while a server is checked, and at the end. */
export type CheckEvent =
  | {
      readonly type: "progress";
      readonly done: number;
      readonly all: number;
      /** What was asked last. */
      readonly about: string;
      /** What it has shown. */
      readonly judgements: readonly ShownJudgement[];
    }
  /** Without the judgements, which were sent before. */
  | { readonly type: "done"; readonly report: Omit<Report, "judgements"> };

export interface ShownJudgement extends Omit<Judgement, "shown" | "findings"> {
  readonly findings: readonly (Finding & { readonly severity: Severity })[];
}
