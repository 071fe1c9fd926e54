/** Members that are compared, of those with about the largest size. */
const compared = 64;

/**
 * Finds the member with the largest size in constant time. Members are grouped by the power of two of their size, so where more than 64
 * members are in the largest group, a member with at least half of the largest size may be found instead.
 */
export class Ranking<Member> {
  readonly #sizeOf: (member: Member) => number;
  readonly #groups: Set<Member>[] = [];
  /** Member → the index of its group. */
  readonly #groupOf = new Map<Member, number>();

  constructor(sizeOf: (member: Member) => number) {
    this.#sizeOf = sizeOf;
  }

  /** Called when the size of a member has changed. A member of size 0 is forgotten. */
  update(member: Member): void {
    const size = this.#sizeOf(member);
    const group = size === 0 ? undefined : Math.floor(Math.log2(size));
    const before = this.#groupOf.get(member);
    if (group === before) return;
    if (before !== undefined) this.#groups[before]?.delete(member);
    if (group === undefined) {
      this.#groupOf.delete(member);
      return;
    }
    while (this.#groups.length <= group) this.#groups.push(new Set());
    this.#groups[group]?.add(member);
    this.#groupOf.set(member, group);
  }

  /** Returns undefined where every size is 0. */
  largest(): Member | undefined {
    const group = this.#groups.findLast(({ size }) => size > 0);
    let largest: Member | undefined;
    let left = compared;
    for (const member of group ?? []) {
      if (left-- === 0) break;
      if (largest === undefined || this.#sizeOf(member) > this.#sizeOf(largest)) largest = member;
    }
    return largest;
  }
}
