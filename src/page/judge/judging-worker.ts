import { judged } from "./judging.ts";
import type { Capture } from "./capture.ts";

// A capture of a hundred thousand events takes seconds: the page stays free meanwhile.
addEventListener("message", ({ data }: MessageEvent<Capture>) => postMessage(judged(data)));
