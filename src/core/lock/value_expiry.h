// The deadline of a key's entry, if its value is a hash whose fields have deadlines: the earliest of its
// own and those of its fields. So the look-up of a key, the timing wheel, SWAPDB and FLUSHDB treat such a
// hash as any other key. A look-up hides all fields that are due; the timing wheel erases hidden fields in
// parts (field_deadlines.h).
#pragma once

#include <cstddef>

#include "core/base/types.h"
#include "core/state/context.h"
#include "core/state/key_ref.h"

namespace holdfast {

// The deadline of the entry follows those of the hash and its fields, after they changed.
void follow_fields(Context& ctx, KeyRef k);
// Before another value replaces a hash: the entry gets the deadline of the hash, which may stay.
void forget_fields(Context& ctx, KeyRef k);
// Sets the deadline of a whole value in its entry, and in the hash if fields have deadlines.
void place_value_deadline(Context& ctx, KeyRef k, TimeMs deadline);

// For expire_key(): hides the fields that are due, and erases at most `most` hidden ones. If all fields are
// hidden, the key goes. The deadline of the key itself is not due. Returns the number of erased fields.
size_t expire_fields(Context& ctx, KeyRef k, size_t most);

}  // namespace holdfast
