/**
 * A whole block that came from this API, as the events of a stream. `members` follow the event's type in its JSON.
 * Blocks with an input tell it piece by piece, a compaction its summary; all others stand in their start as they are.
 */
export function itemEvents(
  block: Readonly<Record<string, unknown>>,
  index: number,
): readonly (readonly [type: string, members: string])[] {
  const start = (shown: unknown) =>
    ["content_block_start", `"index":${index},"content_block":${JSON.stringify(shown)}`] as const;
  const delta = (shown: unknown) =>
    ["content_block_delta", `"index":${index},"delta":${JSON.stringify(shown)}`] as const;
  const stop = ["content_block_stop", `"index":${index}`] as const;
  const { type, input } = block;
  if (typeof input === "object" && input !== null) {
    const piece = (partial_json: string) => delta({ type: "input_json_delta", partial_json });
    return [start({ ...block, input: {} }), piece(""), piece(JSON.stringify(input)), stop];
  }
  if (type === "compaction") {
    const { type: _, ...told } = block;
    const untold = Object.fromEntries(Object.keys(told).map((name) => [name, null]));
    return [start({ type, ...untold }), delta({ ...told, type: "compaction_delta" }), stop];
  }
  return [start(block), stop];
}
