import { langchain } from "./langchain.ts";
import { melleaSuite } from "./mellea.ts";
import { ogxHostedSuite } from "./ogx-hosted.ts";
import { ogxSuite } from "./ogx.ts";
import { openResponses } from "./open-responses.ts";
import { pydanticAi } from "./pydantic-ai.ts";
import type { Suite } from "./suite.ts";

/** All test suites of other projects that run against Truewire. */
export const suites: readonly Suite[] = [openResponses, langchain, ogxSuite, ogxHostedSuite, melleaSuite, pydanticAi];
