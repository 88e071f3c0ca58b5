// Numbers, sizes and times as people read them.

const SIZES = ["bytes", "kB", "MB", "GB"];
const JOIN = "\u00a0"; // a space at which no line is broken

export function bytes(number) {
  let place = 0;
  while (number >= 1000 && place < SIZES.length - 1) {
    number /= 1000;
    place += 1;
  }
  return `${place ? number.toFixed(1) : number}${JOIN}${SIZES[place]}`;
}

/** A text that begins with a capital letter, unless it begins with the name of a file. */
export function sentence(text) {
  return text.replace(/^[a-z]+(?=[ ,:])/, (word) => word.charAt(0).toUpperCase() + word.slice(1));
}

export function percent(share) {
  const value = 100 * share;
  if (value > 99 && value < 100) return `${Math.min(value, 99.9).toFixed(1)}${JOIN}%`;
  return value > 0 && value < 1 ? `<${JOIN}1${JOIN}%` : `${Math.round(value)}${JOIN}%`;
}

const PLURALS = { class: "classes" };

export function count(number, noun) {
  return `${number.toLocaleString("en")} ${number === 1 ? noun : (PLURALS[noun] ?? `${noun}s`)}`;
}

export function seconds(number) {
  return number < 1 ? `${Math.max(1, Math.round(1000 * number))}${JOIN}ms` : `${number.toFixed(1)}${JOIN}s`;
}

export function day(when) {
  return new Date(when).toLocaleDateString("en", { day: "numeric", month: "long", year: "numeric" });
}

const STEPS = [
  [60, "second"],
  [3600, "minute"],
  [86400, "hour"],
  [Infinity, "day"],
];

export function ago(when, now = Date.now()) {
  const past = Math.max(0, (now - new Date(when).getTime()) / 1000);
  if (Number.isNaN(past)) return "";
  if (past < 10) return "just now";
  const place = STEPS.findIndex(([end]) => past < end);
  const unit = place ? STEPS[place - 1][0] : 1;
  return `${count(Math.floor(past / unit), STEPS[place][1])} ago`;
}
