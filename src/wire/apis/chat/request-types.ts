// Generated from the schemas by src/wire/apis/chat/request-types.test.ts.

/** A part of a message of any role. */
export type ChatContentPart = {
  type: "text";
  text: string;
  prompt_cache_breakpoint?: {
    mode?: string | null | undefined;
    ttl?: string | null | undefined;
  } | null | undefined;
  cache_control?: unknown | undefined;
} | {
  type: "image_url";
  image_url: string | {
    url: string;
    detail?: "auto" | "low" | "high" | "original" | null | undefined;
  };
  prompt_cache_breakpoint?: {
    mode?: string | null | undefined;
    ttl?: string | null | undefined;
  } | null | undefined;
  cache_control?: unknown | undefined;
} | {
  type: "input_audio";
  input_audio: {
    data: string;
    format: "wav" | "mp3";
  };
  prompt_cache_breakpoint?: {
    mode?: string | null | undefined;
    ttl?: string | null | undefined;
  } | null | undefined;
  cache_control?: unknown | undefined;
} | {
  type: "file";
  file: {
    file_data?: string | null | undefined;
    file_id?: string | null | undefined;
    filename?: string | null | undefined;
  };
  prompt_cache_breakpoint?: {
    mode?: string | null | undefined;
    ttl?: string | null | undefined;
  } | null | undefined;
  cache_control?: unknown | undefined;
} | {
  type: "refusal";
  refusal: string;
};

/** The content of a message. */
export type ChatRequestContent = string | ChatContentPart[];

/** A call of a tool in an assistant message. */
export type ChatRequestToolCall = {
  id: string;
  type: "function";
  function: {
    name: string;
    arguments: string;
  };
  extra_content?: Record<string, unknown> | null | undefined;
  provider_specific_fields?: Record<string, unknown> | null | undefined;
  cache_control?: unknown | undefined;
} | {
  id: string;
  type: "custom";
  custom: {
    name: string;
    input: string;
  };
  extra_content?: Record<string, unknown> | null | undefined;
  provider_specific_fields?: Record<string, unknown> | null | undefined;
  cache_control?: unknown | undefined;
};

/** An assistant message of a chat request. */
export type ChatAssistantMessage = {
  role: "assistant";
  content?: string | ({
    type: "text";
    text: string;
    prompt_cache_breakpoint?: {
      mode?: string | null | undefined;
      ttl?: string | null | undefined;
    } | null | undefined;
    cache_control?: unknown | undefined;
  } | {
    type: "refusal";
    refusal: string;
  })[] | null | undefined;
  name?: string | null | undefined;
  refusal?: string | null | undefined;
  reasoning_content?: string | null | undefined;
  reasoning?: string | null | undefined;
  reasoning_details?: Record<string, unknown>[] | null | undefined;
  thinking_blocks?: ({
    type: "thinking";
    thinking?: string | null | undefined;
    signature?: string | null | undefined;
  } | {
    type: "redacted_thinking";
    data: string;
  })[] | null | undefined;
  tool_calls?: ChatRequestToolCall[] | null | undefined;
  function_call?: {
    name: string;
    arguments: string;
  } | null | undefined;
  audio?: {
    id: string;
  } | null | undefined;
  cache_control?: unknown | undefined;
};

/** A message of a chat request. */
export type ChatRequestMessage = {
  role: "system";
  content?: string | {
    type: "text";
    text: string;
    prompt_cache_breakpoint?: {
      mode?: string | null | undefined;
      ttl?: string | null | undefined;
    } | null | undefined;
    cache_control?: unknown | undefined;
  }[] | null | undefined;
  name?: string | null | undefined;
  cache_control?: unknown | undefined;
} | ChatAssistantMessage | {
  role: "user";
  content?: string | ({
    type: "text";
    text: string;
    prompt_cache_breakpoint?: {
      mode?: string | null | undefined;
      ttl?: string | null | undefined;
    } | null | undefined;
    cache_control?: unknown | undefined;
  } | {
    type: "image_url";
    image_url: string | {
      url: string;
      detail?: "auto" | "low" | "high" | "original" | null | undefined;
    };
    prompt_cache_breakpoint?: {
      mode?: string | null | undefined;
      ttl?: string | null | undefined;
    } | null | undefined;
    cache_control?: unknown | undefined;
  } | {
    type: "input_audio";
    input_audio: {
      data: string;
      format: "wav" | "mp3";
    };
    prompt_cache_breakpoint?: {
      mode?: string | null | undefined;
      ttl?: string | null | undefined;
    } | null | undefined;
    cache_control?: unknown | undefined;
  } | {
    type: "file";
    file: {
      file_data?: string | null | undefined;
      file_id?: string | null | undefined;
      filename?: string | null | undefined;
    };
    prompt_cache_breakpoint?: {
      mode?: string | null | undefined;
      ttl?: string | null | undefined;
    } | null | undefined;
    cache_control?: unknown | undefined;
  })[] | null | undefined;
  name?: string | null | undefined;
  cache_control?: unknown | undefined;
} | {
  role: "function";
  content: string | null;
  name: string;
} | {
  role: "tool";
  content?: string | ({
    type: "text";
    text: string;
    prompt_cache_breakpoint?: {
      mode?: string | null | undefined;
      ttl?: string | null | undefined;
    } | null | undefined;
    cache_control?: unknown | undefined;
  } | {
    type: "image_url";
    image_url: string | {
      url: string;
      detail?: "auto" | "low" | "high" | "original" | null | undefined;
    };
    prompt_cache_breakpoint?: {
      mode?: string | null | undefined;
      ttl?: string | null | undefined;
    } | null | undefined;
    cache_control?: unknown | undefined;
  } | {
    type: "input_audio";
    input_audio: {
      data: string;
      format: "wav" | "mp3";
    };
    prompt_cache_breakpoint?: {
      mode?: string | null | undefined;
      ttl?: string | null | undefined;
    } | null | undefined;
    cache_control?: unknown | undefined;
  } | {
    type: "file";
    file: {
      file_data?: string | null | undefined;
      file_id?: string | null | undefined;
      filename?: string | null | undefined;
    };
    prompt_cache_breakpoint?: {
      mode?: string | null | undefined;
      ttl?: string | null | undefined;
    } | null | undefined;
    cache_control?: unknown | undefined;
  })[] | null | undefined;
  tool_call_id: string;
  name?: string | null | undefined;
  cache_control?: unknown | undefined;
} | {
  role: "developer";
  content: string | {
    type: "text";
    text: string;
    prompt_cache_breakpoint?: {
      mode?: string | null | undefined;
      ttl?: string | null | undefined;
    } | null | undefined;
    cache_control?: unknown | undefined;
  }[];
  name?: string | null | undefined;
  cache_control?: unknown | undefined;
};

/** A tool of a chat request. */
export type ChatRequestTool = {
  type: "function";
  function: {
    name: string;
    description?: string | null | undefined;
    parameters?: Record<string, unknown> | null | undefined;
    strict?: boolean | null | undefined;
    cache_control?: unknown | undefined;
  };
  cache_control?: unknown | undefined;
} | {
  type: "custom";
  custom: {
    name: string;
    description?: string | null | undefined;
    format?: {
      type: "text";
    } | {
      type: "grammar";
      grammar: {
        definition: string;
        syntax: "lark" | "regex";
      };
    } | null | undefined;
  };
  cache_control?: unknown | undefined;
};

/** The `tool_choice` of a chat request. */
export type ChatRequestToolChoice = "none" | "auto" | "required" | {
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
