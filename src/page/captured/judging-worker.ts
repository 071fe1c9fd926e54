import * as z from "zod";
import type { UnparsedRequest } from "../inspect/read-body.ts";
import { judged } from "./judging.ts";
import type { Capture } from "./capture.ts";

// zod otherwise tries to compile its schemas, which the page's Content-Security-Policy forbids and reports.
z.config({ jitless: true });

// A capture of a hundred thousand events takes seconds: a worker keeps the page responsive.
addEventListener("message", ({ data }: MessageEvent<Capture | { readonly read: UnparsedRequest }>) => {
  if (!("read" in data)) return postMessage(judged(data));
  // The readers of all APIs are needed only for requests that the server did not read.
  return void import("../inspect/read-body.ts").then(({ readBody }) => postMessage(readBody(data.read)));
});
