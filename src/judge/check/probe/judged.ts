import { judgeExpectation } from "../rules/group/expectation.ts";
import type { GroupVerdict } from "../rules/group/group-rule.ts";
import { judge } from "../rules/judge.ts";
import type { ProfileName } from "../rules/profile/profile-rule.ts";
import type { Finding } from "../rules/rule.ts";
import type { Judgement } from "../report/report.ts";
import type { ProbeResult } from "./probe.ts";

/** The result of one probe, or of a scenario of several. */
export interface Judged {
  readonly id: string;
  readonly about: string;
  readonly result?: ProbeResult;
  readonly findings: readonly Finding[];
  /** Rules that it could show. */
  readonly shown: readonly string[];
  /** Why it shows nothing about its subject. */
  readonly notShown?: string;
}

/** What came back for a probe, judged by every rule; `profile`: also by those of the form that was demanded. */
export function judgedResult(result: ProbeResult, profile: ProfileName | undefined): Judged {
  const { probe, exchange } = result;
  const { id, about } = probe;
  if (!exchange) {
    const found = result.failure ?? "no answer";
    // A server need not support this.
    if (probe.expects === "any") return { id, about, result, findings: [], shown: [], notShown: found };
    const rule = probe.expects === "answer" ? "answer/status" : "wrong/status";
    return { id, about, result, findings: [{ rule, start: 0, end: 0, found }], shown: [rule] };
  }
  const expected = judgeExpectation(exchange, probe.expects);
  // An answer to a request that should have been refused is one fault; its contents are not judged.
  const isAnswered = typeof probe.expects === "object" && exchange.response.status < 400;
  const verdict = isAnswered ? { findings: [], shown: [] } : judge(exchange, profile);
  const notShown = exchange.response.status === 200 ? probe.notShown?.(exchange) : undefined;
  return {
    id,
    about,
    result,
    findings: [...verdict.findings, ...expected.findings],
    shown: [...verdict.shown, ...expected.shown],
    ...(notShown !== undefined && { notShown }),
  };
}

/** What a scenario shows as a whole: its verdicts together. */
export function judgedTogether(id: string, about: string, verdicts: readonly GroupVerdict[]): Judged {
  const reasons = verdicts.flatMap(({ reason }) => reason ?? []);
  return {
    id,
    about,
    findings: verdicts.flatMap(({ findings }) => findings),
    shown: verdicts.flatMap(({ shown }) => shown),
    ...(reasons.length > 0 && { notShown: reasons.join("; ") }),
  };
}

/** As reports take it. */
export function judgementOf({ result, ...judged }: Judged): Judgement {
  return { ...judged, ...(result?.exchange && { exchange: result.exchange }) };
}
