import type { Limiter } from "./limits.ts";
import { MemoryLimiter } from "./memory-limiter.ts";

/** Opens what counts: in Redis (`redis://…`, `rediss://…`), or in this process. `warn` gets a line when something is wrong with it. */
export async function openLimiter(url: string | undefined, warn: (line: string) => void): Promise<Limiter> {
  if (url === undefined) return new MemoryLimiter();
  const { openRedisLimiter } = await import("./redis-limiter.ts");
  return openRedisLimiter(url, warn);
}
