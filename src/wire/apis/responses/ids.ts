/** What the id of an item begins with, by the item's type. */
export const idPrefixes = {
  message: "msg_",
  reasoning: "rs_",
  function_call: "fc_",
  function_call_output: "fco_",
  custom_tool_call: "ctc_",
  custom_tool_call_output: "ctco_",
  tool_search_call: "tsc_",
  tool_search_output: "tso_",
  shell_call: "sh_",
  shell_call_output: "sho_",
  local_shell_call: "lsh_",
  local_shell_call_output: "lsho_",
  apply_patch_call: "apc_",
  apply_patch_call_output: "apco_",
  computer_call: "cu_",
  computer_call_output: "cuo_",
  compaction: "cmp_",
  web_search_call: "ws_",
  file_search_call: "fs_",
  code_interpreter_call: "ci_",
  image_generation_call: "ig_",
  mcp_call: "mcp_",
  mcp_list_tools: "mcpl_",
  mcp_approval_request: "mcpr_",
} as const;

function timeDigits(time: number): string {
  return Math.max(0, Math.floor(time)).toString(16).padStart(8, "0").slice(-8);
}

const pattern = /^[a-z]+_([0-9a-f]{16})0[01][0-9a-f]{12}([0-9a-f]{4})[0-9a-f]{16}$/;

/**
 * Returns the digits that a response and its items have in common, or `undefined` if the id is not of OpenAI's form. `head` and `group`
 * are 16 and 4 hexadecimal digits.
 */
export function sharedDigits(id: string): { readonly head: string; readonly group: string } | undefined {
  const [, head, group] = pattern.exec(id) ?? [];
  return head === undefined || group === undefined ? undefined : { head, group };
}

/**
 * Makes the ids that OpenAI gives to a response and its items: a prefix and 50 hexadecimal digits. The digits are 16 of the response's
 * own, `00`, eight of the Unix time in seconds (of an item: when it began), and 24 that look like the end of a UUID. The ids of a response
 * share the first 16 digits and the group that follows the time. Source: 644 recorded answers of 2026.
 */
export class ResponseIds {
  readonly #random: () => number;
  readonly #head: string;
  readonly #group: string;

  /** `random` is uniform in [0, 1). `responseId`: makes further ids of that response, if its id is of OpenAI's form. */
  constructor(random: () => number, responseId = "") {
    this.#random = random;
    const shared = responseId.startsWith("resp_") ? sharedDigits(responseId) : undefined;
    this.#head = shared?.head ?? `0${this.#digits(15)}`;
    this.#group = shared?.group ?? `81${this.#oneOf("9a")}${this.#digits(1)}`;
  }

  /** `created`: Unix time in seconds. */
  response(created: number): string {
    return this.#id("resp_", created);
  }

  /** A conversation's id has the time first, and the 16 digits last. Source: recordings of 2025-12 and 2026-01. */
  conversation(created: number): string {
    const time = timeDigits(created);
    const random = `${this.#digits(3)}${this.#oneOf("048c")}`;
    return `conv_${time}${random}${this.#group}${this.#oneOf("89ab")}${this.#digits(15)}${this.#head}`;
  }

  item(prefix: string, began: number): string {
    return this.#id(prefix, began);
  }

  #id(prefix: string, time: number): string {
    const seconds = timeDigits(time);
    const random = `${this.#digits(3)}${this.#oneOf("048c")}`;
    return `${prefix}${this.#head}00${seconds}${random}${this.#group}${this.#oneOf("89ab")}${this.#digits(15)}`;
  }

  #digits(count: number): string {
    let text = "";
    for (let i = 0; i < count; i++) text += Math.floor(this.#random() * 16).toString(16);
    return text;
  }

  #oneOf(characters: string): string {
    return characters.charAt(Math.floor(this.#random() * characters.length));
  }
}
