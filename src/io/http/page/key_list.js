// The keys of one database in the order of the table: first those with the most waiters, as /api/v1/top
// counts them without a walk, then the others in pages of LOCKS LIST. A server with a million keys is read
// only as far as the user turns the pages.
import {get} from "./api.js";

const kTop = 1000;
const kPage = 200;
const kMaxRequests = 20;  // for one call of more(): a search that finds nothing ends, and can be continued

// A plain text becomes *text*; a text with * ? or [ is a pattern already.
export function pattern(text) {
  if (!text) return "*";
  return /[*?[]/.test(text) ? text : `*${text.replaceAll("\\", "\\\\")}*`;
}

// The server's glob as a regular expression.
function matcher(glob) {
  const parts = glob.match(/\\[^]|\[\^?(?:\\[^]|[^\]])*\]?|\*+|[^]/gu) ?? [];
  const source = parts.map((part) => {
    if (part[0] === "*") return "[^]*?";
    if (part === "?") return "[^]";
    if (part[0] === "[" && part.endsWith("]") && part.length > 2) return part;
    return (part[0] === "\\" && part.length > 1 ? part.slice(1) : part)
        .replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&");
  });
  try {
    return new RegExp(`^${source.join("")}$`);
  } catch {
    return /^/;
  }
}

export class KeyList {
  constructor(db, text) {
    this.db = db;
    this.glob = pattern(text);
    this.keys = new Map();  // key_id → {key, key_id, waiters}
    this.cursor = "0";
    this.done = false;
  }

  get rows() { return [...this.keys.values() ]; }

  // Reads until there are `wanted` keys, or no more, or kMaxRequests requests.
  async more(wanted) {
    if (!this.top) await this.begin();
    for (let i = 0; i < kMaxRequests && !this.done && this.keys.size < wanted; i++) await this.page();
  }

  async begin() {
    const {keys} = await get(`top?by=waiters&count=${kTop}`);
    const matches = matcher(this.glob);
    this.top = keys.filter((k) => k.db === this.db && k.waiters > 0 && matches.test(k.key));
    for (const row of this.top.sort((a, b) => b.waiters - a.waiters)) this.keys.set(row.key_id, row);
  }

  async page() {
    const query =
        `db=${this.db}&cursor=${this.cursor}&count=${kPage}&match=${encodeURIComponent(this.glob)}`;
    const {cursor, locks} = await get(`locks?${query}`);
    for (const row of locks.sort((a, b) => b.waiters - a.waiters)) {
      if (!this.keys.has(row.key_id)) this.keys.set(row.key_id, row);
    }
    this.cursor = cursor;
    this.done = cursor === "0";
  }
}
