// Generated from the schemas by src/wire/apis/chat/request-types.test.ts.

/** A part of a message's content. */
export type ProgramContentPart = {
  type: "text";
  text: string;
} | {
  type: "image_url";
  image_url: {
    url: string;
    detail?: "auto" | "low" | "high" | "original";
  };
} | {
  type: "input_audio";
  input_audio: {
    data: string;
    format: "wav" | "mp3";
  };
} | {
  type: "file";
  file: {
    file_data?: string;
    file_id?: string;
    filename?: string;
  };
};

/** A call in an assistant message. */
export type ProgramToolCall = {
  id: string;
  type: "function";
  function: {
    name: string;
    arguments: string;
  };
} | {
  id: string;
  type: "custom";
  custom: {
    name: string;
    input: string;
  };
};

/** A message, as a chat request has it. A tool's result may have images. */
export type ProgramMessage =
  | {
      role: "system";
      content: string | ProgramContentPart[];
      name?: string;
    }
  | {
      role: "developer";
      content: string | ProgramContentPart[];
      name?: string;
    }
  | {
      role: "user";
      content: string | ProgramContentPart[];
      name?: string;
    }
  | {
      role: "assistant";
      content: string | { type: "text"; text: string }[] | null;
      name?: string;
      refusal?: string;
      reasoning_content?: string;
      tool_calls?: ProgramToolCall[];
    }
  | {
      role: "tool";
      content: string | ProgramContentPart[];
      tool_call_id: string;
      name?: string;
    };

/** A tool that the client offers. */
export type ProgramTool = {
  type: "function";
  function: {
    name: string;
    description?: string;
    parameters?: Record<string, unknown>;
    strict?: boolean;
  };
} | {
  type: "custom";
  custom: {
    name: string;
    description?: string;
    format?: {
      type: "text";
    } | {
      type: "grammar";
      grammar: {
        definition: string;
        syntax: "lark" | "regex";
      };
    };
  };
};

/** The parameters of a chat request, by their meaning in docs/parameters.md, and the client's own members. */
export interface ProgramOptions {
  tool_choice?: "none" | "auto" | "required" | {
    type: "allowed_tools";
    allowed_tools: {
      mode: "auto" | "required";
      tools: ({
        type: "function";
        function: {
          name: string;
        };
      } | {
        type: "custom";
        custom: {
          name: string;
        };
      })[];
    };
  } | {
    type: "function";
    function: {
      name: string;
    };
  } | {
    type: "custom";
    custom: {
      name: string;
    };
  };
  parallel_tool_calls?: boolean;
  temperature?: number;
  top_p?: number;
  presence_penalty?: number;
  frequency_penalty?: number;
  logprobs?: boolean;
  top_logprobs?: number;
  user?: string;
  seed?: number;
  safety_identifier?: string;
  prompt_cache_options?: {
    mode?: string;
    ttl?: string;
    [member: string]: unknown;
  };
  prompt_cache_key?: string;
  prompt_cache_retention?: "in_memory" | "in-memory" | "24h";
  response_format?: {
    type: "text";
  } | {
    type: "json_object";
    schema?: Record<string, unknown>;
  } | {
    type: "json_schema";
    json_schema: {
      name?: string;
      description?: string;
      schema?: Record<string, unknown> | boolean;
      strict?: boolean;
    };
  };
  service_tier?: "auto" | "default" | "flex" | "scale" | "priority" | "fast";
  max_tokens?: number;
  reasoning_effort?: "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max";
  logit_bias?: Record<string, number> | [token: number | string, bias: number][];
  stop?: string | string[];
  store?: boolean;
  metadata?: Record<string, unknown>;
  prediction?: {
    type: "content";
    content: unknown;
  };
  verbosity?: "low" | "medium" | "high";
  grammar?: string;
  guided_regex?: string;
  guided_choice?: string[];
  top_k?: number;
  min_p?: number;
  repeat_penalty?: number;
  repeat_last_n?: number;
  xtc_probability?: number;
  xtc_threshold?: number;
  dry_multiplier?: number;
  dry_base?: number;
  dry_allowed_length?: number;
  dry_penalty_last_n?: number;
  dry_sequence_breakers?: string | string[];
  min_tokens?: number;
  ignore_eos?: boolean;
  stop_token_ids?: number[];
  cache_prompt?: boolean;
  lora?: {
    id: number;
    scale: number;
  }[];
  chat_template_kwargs?: Record<string, unknown>;
  documents?: Record<string, unknown>[];
  add_generation_prompt?: boolean;
  continue_final_message?: boolean;
  response_prefix?: string;
  reasoning_format?: "none" | "auto" | "deepseek";
  thinking_token_budget?: number;
  return_token_ids?: boolean;
  prompt_logprobs?: number;
  return_progress?: boolean;
  include_timings?: boolean;
  /** Members that Truewire does not know. */
  [member: string]: unknown;
}
