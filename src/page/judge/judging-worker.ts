import * as z from "zod";
import { judged } from "./judging.ts";
import type { Capture } from "./capture.ts";

// zod otherwise tries to compile its schemas, which the page's Content-Security-Policy forbids and reports.
z.config({ jitless: true });

// A capture of a hundred thousand events takes seconds: a worker keeps the page responsive.
addEventListener("message", ({ data }: MessageEvent<Capture>) => postMessage(judged(data)));
