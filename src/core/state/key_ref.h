// A key that was looked up, as the functions that change it take it.
#pragma once

#include "core/base/types.h"
#include "core/keyspace/keyspace.h"

namespace holdfast {

// The database of a key, and the place of its entry there. It is a parameter, passed by value and never
// stored: `f` is the caller's, and a function that moves or removes the entry updates it.
struct KeyRef {
  DbIndex db;
  Keyspace::Found& f;

  explicit operator bool() const { return bool{f}; }  // whether the key has an entry
  Entry& operator*() const { return *f; }
  Entry* operator->() const { return f.operator->(); }
};

}  // namespace holdfast
