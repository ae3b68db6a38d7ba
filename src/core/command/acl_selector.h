// The commands that a selector allows: the elementary changes, used to parse and to describe rules.
#pragma once

#include "core/command/acl_rules.h"
#include "core/command/categories.h"

namespace holdfast {

bool has_subcommands(const Command& command);
// Allows or denies one command with all its subcommands.
void allow(AclSelector& s, const Command& command, bool allowed);
// `category` is one bit.
void allow_category(AclSelector& s, uint32_t category, bool allowed);
void allow_all(AclSelector& s, bool allowed);

}  // namespace holdfast
