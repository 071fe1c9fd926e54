export const gaps: Readonly<Record<string, Readonly<Record<string, string>>>> = {};
