/** What the page puts into `messages`: OpenAI's chat form, as far as the page makes it. */
export type PlayMessage =
  | { readonly role: "system"; readonly content: string }
  | { readonly role: "user"; readonly content: string | readonly Part[] }
  | {
      readonly role: "assistant";
      readonly content: string | null;
      /** Not OpenAI's: DeepSeek's name, which this server and most others take. */
      readonly reasoning_content?: string;
      readonly refusal?: string;
      readonly tool_calls?: readonly ToolCall[];
    }
  | { readonly role: "tool"; readonly tool_call_id: string; readonly content: string };

type Part =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image_url"; readonly image_url: { readonly url: string } };

interface ToolCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
}
