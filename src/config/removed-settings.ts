/** Settings that earlier versions had, by name: what to do without them. */
export const removedSettings: Readonly<Record<string, string>> = {
  learn:
    "was removed: a server teaches by its refusals, and `truewire doctor URL --write FILE` asks it for all of them",
};
