// Which commands a selector allows: the steps that rules are made of, for those who read and write them.
#pragma once

#include "core/command/acl_rules.h"
#include "core/command/categories.h"

namespace holdfast {

bool has_subcommands(const Command& command);
// One command with all its subcommands.
void allow(AclSelector& s, const Command& command, bool allowed);
// `category` is one bit.
void allow_category(AclSelector& s, uint32_t category, bool allowed);
void allow_all(AclSelector& s, bool allowed);

}  // namespace holdfast
