import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from "node:crypto";
import type { Store } from "./store.ts";

/*
 * A value that expires, such as a token, which one of several instances obtains and the others read from the store. It is stored encrypted
 * (AES-256-GCM) with a secret that only the instances have: who reads the store, or a copy of it, does not learn the value.
 */

/** `expiresAt`: in milliseconds of Unix time. */
export interface SharedValue {
  readonly value: string;
  readonly expiresAt: number;
}

export interface Sharing {
  readonly store: Store;
  /** What encrypts the value. All instances have the same one. */
  readonly secret: string;
  /** What the value is of: instances with the same text share it. */
  readonly id: string;
  /** Called with the reason if the value cannot be shared: once, and again after a success. */
  readonly failed: (why: string) => void;
  readonly now?: () => number;
  /** Waits before the store is read again. */
  readonly wait?: () => Promise<unknown>;
}

/** How long an instance waits for another one's value, in milliseconds: a command ends after 30 seconds. */
const patienceMs = 35_000;
const pollMs = 200;
/** A stored value that expires sooner is not used: it could expire on its way. */
const marginMs = 10_000;

/**
 * Returns `obtain` for an instance that shares values with others. A stored value is returned unless it expires or is the one returned last:
 * then one instance obtains another. Where the store fails, each instance obtains its own.
 */
export function sharedValue(obtain: () => Promise<SharedValue>, sharing: Sharing): typeof obtain {
  const { store, failed, now = Date.now, wait = pause } = sharing;
  const cipher = new Cipher(sharing.secret, sharing.id);
  let last: string | undefined;
  let hasFailed = false;
  /** What a use of the store resolves to; undefined where it fails. */
  const attempt = async <T>(use: () => Promise<T>): Promise<T | undefined> => {
    try {
      const value = await use();
      hasFailed = false;
      return value;
    } catch (error) {
      if (!hasFailed) failed((error as Error).message);
      hasFailed = true;
      return undefined;
    }
  };
  const name = `credentials ${cipher.name}`;
  const read = async (): Promise<SharedValue | undefined> => {
    const text = await store.get(name);
    const value = text === undefined ? undefined : cipher.decrypt(text);
    return value && value.expiresAt > now() + marginMs && value.value !== last ? value : undefined;
  };
  return async () => {
    const until = now() + patienceMs;
    let claim: string;
    for (;;) {
      const stored = await attempt(read);
      if (stored) {
        last = stored.value;
        return stored;
      }
      // An instance that stops while it obtains the value holds up others until the next claim can be made.
      claim = `${name}-${Math.floor(now() / patienceMs)}`;
      const isTaken = await attempt(() => store.append(claim, "1", true));
      if (isTaken !== true || now() >= until) break;
      await wait();
    }
    try {
      const own = await obtain();
      last = own.value;
      await attempt(() => store.set(name, cipher.encrypt(own)));
      return own;
    } finally {
      await attempt(() => store.delete(claim));
    }
  };
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, pollMs));
}

const algorithm = "aes-256-gcm";
const ivBytes = 12;
const tagBytes = 16;

/** Encrypts the values of one id. */
class Cipher {
  /** Does not contain the id: a command may show where secrets are. */
  readonly name: string;
  readonly #key: Buffer;

  constructor(secret: string, id: string) {
    const derived = (purpose: string, bytes: number): Buffer =>
      Buffer.from(hkdfSync("sha256", secret, "truewire credential", sha256(`${purpose} ${id}`), bytes));
    this.#key = derived("value", 32);
    this.name = derived("name", 16).toString("hex");
  }

  encrypt(value: SharedValue): string {
    const iv = randomBytes(ivBytes);
    const cipher = createCipheriv(algorithm, this.#key, iv);
    const encrypted = Buffer.concat([cipher.update(JSON.stringify(value)), cipher.final()]);
    return Buffer.concat([iv, cipher.getAuthTag(), encrypted]).toString("base64");
  }

  /** Throws an Error for a text that was not encrypted with this secret. */
  decrypt(text: string): SharedValue {
    const bytes = Buffer.from(text, "base64");
    const start = ivBytes + tagBytes;
    try {
      const cipher = createDecipheriv(algorithm, this.#key, bytes.subarray(0, ivBytes), { authTagLength: tagBytes });
      cipher.setAuthTag(bytes.subarray(ivBytes, start));
      return JSON.parse(cipher.update(bytes.subarray(start), undefined, "utf8") + cipher.final("utf8")) as SharedValue;
    } catch {
      throw new Error("the stored credential was not written by an instance with this secret");
    }
  }
}

/** The `info` of HKDF has a maximum length. */
function sha256(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
