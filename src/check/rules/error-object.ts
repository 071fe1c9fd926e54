import { isObject } from "../../core/json.ts";

/** Returns what is wrong with an error object, or `undefined`. Source: specification, `Error`: all four members are required. */
export function errorObjectViolation(error: unknown): string | undefined {
  if (!isObject(error)) return `error is ${typeof error === "string" ? "a string" : JSON.stringify(error)}`;
  if (typeof error.message !== "string" || error.message === "") return "an error without a message";
  if (typeof error.type !== "string") return "an error without a type";
  for (const name of ["param", "code"]) {
    if (!(name in error)) return `an error without ${name}`;
    if (error[name] !== null && typeof error[name] !== "string") return `${name} is ${JSON.stringify(error[name])}`;
  }
  return undefined;
}
