/** Python's `strftime` for the directives that dates in prompts use, in the C locale and the local time zone. */
export function strftime(date: Date, format: string): string {
  return format.replace(/%(-?)([a-zA-Z%])/g, (directive, unpadded: string, letter: string) => {
    const part = parts[letter]?.(date);
    if (part === undefined) return directive;
    return unpadded === "" ? part : part.replace(/^0+(?=.)/, "");
  });
}

const days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const months = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];

const two = (number: number): string => String(number).padStart(2, "0");
const day = (date: Date): string => days[date.getDay()] ?? "";
const month = (date: Date): string => months[date.getMonth()] ?? "";

const parts: Readonly<Record<string, (date: Date) => string>> = {
  Y: (date) => String(date.getFullYear()),
  y: (date) => two(date.getFullYear() % 100),
  m: (date) => two(date.getMonth() + 1),
  d: (date) => two(date.getDate()),
  e: (date) => String(date.getDate()).padStart(2),
  B: month,
  b: (date) => month(date).slice(0, 3),
  h: (date) => month(date).slice(0, 3),
  A: day,
  a: (date) => day(date).slice(0, 3),
  H: (date) => two(date.getHours()),
  I: (date) => two(date.getHours() % 12 || 12),
  M: (date) => two(date.getMinutes()),
  S: (date) => two(date.getSeconds()),
  p: (date) => (date.getHours() < 12 ? "AM" : "PM"),
  j: (date) => String(dayOfYear(date)).padStart(3, "0"),
  F: (date) => strftime(date, "%Y-%m-%d"),
  T: (date) => strftime(date, "%H:%M:%S"),
  R: (date) => strftime(date, "%H:%M"),
  D: (date) => strftime(date, "%m/%d/%y"),
  c: (date) => strftime(date, "%a %b %e %H:%M:%S %Y"),
  "%": () => "%",
};

function dayOfYear(date: Date): number {
  const days = Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()) - Date.UTC(date.getFullYear(), 0, 0);
  return days / 86_400_000;
}
