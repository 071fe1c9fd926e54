import { copied, wholeCharacters } from "./copied.ts";
import type { KeptText } from "../../inspect/inspected-request.ts";

/** As much of a text's beginning as may be kept. `limit`: in bytes. */
export function keptText(text: string, limit: number): KeptText {
  const most = Math.floor(limit / 2);
  if (text.length <= most) return { text };
  const end = wholeCharacters(text, most);
  return { text: copied(text, 0, end), left_out: text.length - end };
}
