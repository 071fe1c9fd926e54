import { once } from "node:events";
import { betweenJson } from "../../../judge/between/report.ts";
import { runBetween } from "../../../judge/between/run-between.ts";
import type { BetweenRequest } from "../../server/admin/model-control.ts";

// A process of its own, as that of a check: a gateway may send what it likes.

const [asked] = (await once(process, "message")) as [BetweenRequest];
const { url, model = "between", port, key, ...rest } = asked;

try {
  const run = await runBetween({
    ...rest,
    url,
    model,
    key,
    vendorPort: port,
    timeoutMs: 60_000,
    onProgress: (done, all, { title }) => process.send?.({ type: "progress", done, all, about: title }),
  });
  process.send?.({ type: "done", report: betweenJson({ ...run, url, known: new Set() }) });
} catch (error) {
  const isUsed = (error as NodeJS.ErrnoException).code === "EADDRINUSE";
  const message = error instanceof Error ? error.message : String(error);
  process.send?.({ type: "failed", message: isUsed ? `Port ${port} is in use: choose another one.` : message });
}
