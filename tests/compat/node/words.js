// Outcomes and values that the steps of several clients share.
"use strict";

module.exports = {
  ALL_BYTES: Buffer.from(Array.from({ length: 256 }, (_, i) => i)),
  WRONG_TYPE: "WRONGTYPE Operation against a key holding the wrong kind of value",
  NOT_INTEGER: "ERR value is not an integer or out of range",
};
