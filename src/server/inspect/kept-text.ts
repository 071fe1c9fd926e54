import type { KeptText } from "../../inspect/inspected-request.ts";

/** As much of a text's beginning as may be kept. `limit`: in bytes. */
export function keptText(text: string, limit: number): KeptText {
  const most = Math.floor(limit / 2);
  return text.length <= most ? { text } : { text: text.slice(0, most), left_out: text.length - most };
}
