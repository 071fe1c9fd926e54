import { demo } from "./demo.ts";
import { litellm } from "./litellm.ts";
import { llamaCppPython } from "./llama-cpp-python.ts";
import { llamaServer } from "./llama-server.ts";
import { mellea } from "./mellea.ts";
import { ollama } from "./ollama.ts";
import { ogx } from "./ogx.ts";
import { portkey } from "./portkey.ts";
import type { RealServer } from "./server.ts";
import { transformers, vllm } from "./vllm.ts";

/** All servers that Truewire is tested with. */
export const realServers: readonly RealServer[] = [
  llamaServer,
  llamaCppPython,
  ollama,
  litellm,
  ogx,
  mellea,
  portkey,
  vllm,
  transformers,
  demo,
];
