// The records of the journal.
//
// The grammar, in the notation of bytes.h (text, number, u8); a deadline is a number, 0 for none, else the
// wall clock's milliseconds + 1; `hold` and `holder` are those of hold_codec.h:
//   payload = { record }        the changes of one loop iteration; replayed whole or not at all
//   record  = u8 op, u8 db, ...   with the database number that clients use:
//     string        key deadline hold value      replaces the key, whatever it was
//     hash          key deadline number-of-pairs { field value }
//     lock          key number-of-holders { holder }
//     erase         key
//     set-fields    key number-of-pairs { field value }    of an existing hash
//     erase-fields  key number { field }
//     put-holder    key holder      of an existing lock; replaces a holder with that owner
//     erase-holder  key owner
//     delay         key deadline    the lock-delay
//     flush         -               the database is emptied
//     swap          u8 db           the two databases are exchanged
//     lease         id serial token ttl deadline number { key }
//     lease-end     id u8 state token
//     clock         boot-id ahead   the clock of the deadlines that follow: see hold_codec.h
//     set           key deadline number { member }
//     deadline      key deadline       of an existing hash, list, set or sorted set
//     add-members   key number { member }     of an existing set
//     erase-members key number { member }     of an existing set or sorted set
//     list          key deadline number { element }
//     push-elements key u8 end number { element }        of an existing list; end 0: head, 1: tail
//     set-element   key index element                    of an existing list, here and in the next records
//     insert-element key index element
//     erase-elements key index number
//     erase-equal-elements key u8 end most element       at most so many, from that end on
//     sorted-set    key deadline number { member score }       score: 8 bytes of a double, low first
//     put-scores    key number { member score }                of an existing sorted set, also in the next
//     erase-ranks   key rank number
//     library       code            of functions; replaces one with the same name
//     library-end   name            empty: all libraries
//                                   Only the libraries at the end of a payload count: those before it may
//                                   register the same function twice.
//     field-deadlines key number { field deadline }    of an existing hash; deadline 0: the field has none
//     string-part   key deadline hold size at part    of an existing string of `size` bytes: the part
//                                   replaces the bytes from `at` on; zeros fill a gap. Deadline and hold
//                                   are the new ones, also if the part is empty
//     move          key deadline hold to    the value moves to the key `to`, and replaces its value;
//                                   deadline and hold (of a string) are those of `to`
//     copy          key deadline hold to u8 db    the same for a copy, which may go to another database
//     lease-deadline id ttl deadline    of a live lease
//     restore       key deadline hold payload    replaces the key by the value of a payload of RESTORE,
//                                   which is without version and checksum (payload.h); deadline and hold
//                                   (of a string) are those of the key
//
// The size of a record follows the cost of the change: a change of a large value records the change, not
// the value.
//
// No record relies on the form of a value (packed or a ValueBody, and its encoding): the value that
// a snapshot or another record restored may have another form than the one that was changed.
//
// A file begins with a clock before its first record, and has another one after each change of the wall
// clock. A server that does not know its boot-id writes no clock.
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
  // The numbers from 15 on are not known to Holdfast 0.1.
  kDeadline = 15,
  kSet = 16,
  kAddMembers = 17,
  kEraseMembers = 18,
  kZset = 20,
  kPutScores = 21,
  kEraseRanks = 22,
  kList = 30,
  kPushElements = 31,
  kSetElement = 32,
  kInsertElement = 33,
  kEraseElements = 34,
  kEraseEqualElements = 35,
  kLibrary = 40,
  kLibraryEnd = 41,
  kFieldDeadlines = 42,
  kStringPart = 43,
  kMove = 44,
  kLeaseDeadline = 45,
  kCopy = 46,
  kRestore = 47,
};

}  // namespace holdfast
