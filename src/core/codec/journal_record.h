// The records of the journal.
//
// The grammar, in the notation of bytes.h (text, number, u8); a deadline is a number, 0 for none, else the
// wall clock's milliseconds + 1; `hold` and `holder` are those of hold_codec.h:
//   payload = { record }        what one turn changed; done whole or not at all
//   record  = u8 op, u8 db, ...   with a database's number as clients know it:
//     string        key deadline hold value      the key is this, whatever it was
//     hash          key deadline number-of-pairs { field value }
//     lock          key number-of-holders { holder }
//     erase         key
//     set-fields    key number-of-pairs { field value }    of a hash that is there
//     erase-fields  key number { field }
//     put-holder    key holder      of a lock that is there; instead of one with that owner
//     erase-holder  key owner
//     delay         key deadline    the lock-delay
//     flush         -               the database is emptied
//     swap          u8 db           the two databases change places
//     lease         id serial token ttl deadline number { key }
//     lease-end     id u8 state token
//     clock         boot-id ahead   what the deadlines from here on are to be read by: see hold_codec.h
//
// A file begins with a clock before its first record, and has another where the wall clock has moved; a
// server that does not know its boot-id writes none.
#pragma once

#include <cstdint>

namespace holdfast {

enum class Record : uint8_t {
  kString = 1,
  kHash,
  kLock,
  kErase,
  kSetFields,
  kEraseFields,
  kPutHolder,
  kEraseHolder,
  kDelay,
  kFlush,
  kSwap,
  kLease,
  kLeaseEnd,
  kClock,
};

}  // namespace holdfast
