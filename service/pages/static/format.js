// Figures as people read them. What does not exist is a dash.

const NONE = "–";

function missing(value) {
  return value === null || value === undefined || Number.isNaN(value);
}

/** Four significant digits; very small and very large ones with an exponent. */
export function number(value) {
  if (missing(value)) return NONE;
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e7)) return value.toExponential(2);
  return String(Number(value.toPrecision(4)));
}

/** A whole number with thin gaps between thousands. */
export function count(value) {
  return missing(value) ? NONE : Math.round(value).toLocaleString("en").replaceAll(",", "\u202f");
}

/** A fraction as per cent. */
export function percent(value) {
  if (missing(value)) return NONE;
  const hundredfold = 100 * value;
  if (hundredfold === 100) return "100 %";
  return `${hundredfold >= 10 ? hundredfold.toFixed(1) : Number(hundredfold.toPrecision(2))} %`;
}

/** Seconds, in the unit that fits. */
export function duration(seconds) {
  if (missing(seconds)) return NONE;
  if (seconds <= 0) return "0 s";
  if (seconds < 1e-3) return `${Number((1e6 * seconds).toPrecision(3))} µs`;
  if (seconds < 1) return `${Number((1e3 * seconds).toPrecision(3))} ms`;
  if (seconds < 60) return `${Number(seconds.toPrecision(3))} s`;
  const whole = Math.round(seconds);
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60)];
  return hours ? `${hours} h ${minutes} min` : `${minutes} min ${whole % 60} s`;
}

/** Bytes, in decimal units. */
export function bytes(value) {
  if (missing(value)) return NONE;
  const units = ["B", "kB", "MB", "GB", "TB"];
  let place = 0;
  while (value >= 1000 && place < units.length - 1) {
    value /= 1000;
    place += 1;
  }
  return `${Number(value.toPrecision(3))} ${units[place]}`;
}

/** A message as a sentence. */
export function sentence(text) {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
}

/** A moment in the reader's time zone. */
export function moment(text) {
  return missing(text) ? NONE : new Date(text).toLocaleString("sv");
}

/** Seconds between two moments; without an end, until now. */
export function between(start, end) {
  if (missing(start)) return null;
  return Math.max(0, ((missing(end) ? Date.now() : Date.parse(end)) - Date.parse(start)) / 1000);
}
