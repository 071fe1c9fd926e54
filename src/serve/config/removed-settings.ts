/** Settings that earlier versions had, by name: what to do without them. */
export const removedSettings: Readonly<Record<string, string>> = {
  attachResends:
    "was removed: a client that loses its connection resumes its stream with the header X-Truewire-Resume, or asks for a response in the background",
  learn:
    "was removed: a server teaches by its refusals, and `truewire doctor URL --write FILE` asks it for all of them",
};
