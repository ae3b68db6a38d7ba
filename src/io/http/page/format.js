// Figures as texts. Times are in milliseconds.

const kMaxName = 600;  // an owner has at most 512 bytes, unless the server has another limit
const kUnits = [ ["d", 86400000], ["h", 3600000], ["min", 60000], ["s", 1000] ];

// "0.4 ms", "350 ms", "12.3 s", "5 min 3 s", "2 d 4 h"
export function duration(ms) {
  if (ms < 10 && ms !== Math.round(ms)) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60000) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  const first = kUnits.findIndex(([, size ]) => ms >= size);
  const parts = kUnits.slice(first, first + 2).map(([name, size]) => {
    const n = Math.floor(ms / size);
    ms -= n * size;
    return n ? `${n} ${name}` : "";
  });
  return parts.filter(Boolean).join(" ");
}

export function timeLeft(ms) { return ms < 0 ? "until released" : duration(ms); }

export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; n >= 1024 && unit < units.length - 1; unit++) n /= 1024;
  return `${unit && n < 100 ? n.toFixed(1) : Math.round(n)} ${units[unit]}`;
}

export function count(n) { return n.toLocaleString("en"); }

export function rate(n) { return n < 10 && n > 0 ? n.toFixed(1) : count(Math.round(n)); }

// The wall clock of the browser's zone; with the date if it is not today.
export function clock(ms) {
  const at = new Date(ms);
  const time = at.toLocaleTimeString("en-GB");
  return at.toDateString() === new Date().toDateString() ? time :
                                                           `${at.toLocaleDateString("en-CA")} ${time}`;
}

// A name that is so long that it would hide the others is cut.
export function short(text) {
  return text.length > kMaxName ? `${text.slice(0, kMaxName)}… (${count(text.length)} characters)` : text;
}

export function plural(n, one, many = `${one}s`) { return `${count(n)} ${n === 1 ? one : many}`; }
