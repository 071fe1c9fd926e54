import { randomUUID } from "node:crypto";
import { link, mkdir, open, readFile, rm } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Returns the secret in a file, which is written with `fresh` if it does not exist: for its user only (mode 0600), in a folder that is
 * created. Of processes that start at the same time, all get the secret of one. Rejects with the system's error.
 */
export async function openSecretFile(path: string, fresh: string): Promise<string> {
  const existing = await readSecret(path);
  if (existing !== undefined) return existing;
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  // A link to a file that is complete fails if the name exists: no process reads a part of a secret, and none replaces one.
  const whole = `${path}.${randomUUID()}.tmp`;
  try {
    const file = await open(whole, "wx", 0o600);
    try {
      await file.writeFile(`${fresh}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await link(whole, path);
    return fresh;
  } catch (error) {
    const other = await readSecret(path);
    if (other === undefined) throw error;
    return other;
  } finally {
    await rm(whole, { force: true });
  }
}

async function readSecret(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, "utf8")).trim();
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}
