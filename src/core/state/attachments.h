// Attachments of exclusive holds, which stand beside the entries of their keys.
#pragma once

#include <absl/container/btree_map.h>

#include "core/keyspace/keyspace.h"
#include "core/keyspace/lock_body.h"

namespace holdfast {

// By attachment_key(). A tree, as a hash table that grows delays all clients.
class Attachments : public absl::btree_map<uint64_t, Attachment> {
 public:
  uint64_t note_bytes = 0;  // of all notes; the functions of holds.h keep it
};

inline uint64_t attachment_key(DbIndex db, Handle h) { return (uint64_t{db} << 32U) | h; }
// Returns the attachment of an exclusive hold; null if it has none.
inline const Attachment* attachment_of(const Attachments& attachments, DbIndex db,
                                       const Keyspace::Found& f) {
  if (!f->attached) return nullptr;
  return &attachments.find(attachment_key(db, f.handle()))->second;
}

}  // namespace holdfast
