/**
 * One attack of the campaign that `npm run bench attack` runs: what a single client (or upstream, or store) does to a server, and whether
 * the server kept serving the others.
 */
export interface Attack {
  /** Names the row in the table, and is matched by `--row`: "20 MB of one stop string". */
  readonly name: string;
  /** True for attacks that run only with `--all`: they take more than about ten seconds, or a test tries nearly the same. */
  readonly slow?: boolean;
  /** Starts what it attacks, attacks it, stops it again, and reports the outcome. Resolves also when the server did not hold. */
  run(): Promise<AttackOutcome>;
}

/** What an attack did. It succeeds by outcome only: time is reported, and never decides. */
export interface AttackOutcome {
  /** What the attacker was answered: "400", "200 ×12, 503 ×98", "1,000 links of a chain, each answered". */
  readonly answered: string;
  /** What other clients saw meanwhile: "a stream of 200 chunks, complete". */
  readonly others: string;
  /** Resident memory of the attacked processes before, at the worst moment, and after, in MiB, where it was measured. */
  readonly memoryMiB?: readonly [before: number, worst: number, after: number];
  /** Wall time of the attack, in milliseconds. */
  readonly tookMs: number;
  /** One sentence for each thing that must hold and did not; empty where the server held. */
  readonly failures: readonly string[];
}
