// A clock that a case moves forward: for libraries that take the time from Date.now(). Require it first.
// Timers and the servers' clocks do not move, so the TTLs of keys must be longer than the test.
"use strict";
const now = Date.now;
let ahead = 0;

Date.now = () => now() + ahead;

function advance(ms) {
  ahead += ms;
}

module.exports = { advance };
