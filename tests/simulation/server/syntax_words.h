// Requests of any command of the table, made from the syntax in its row. So a new command is in the
// simulation as soon as it has a row.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "../dice.h"
#include "core/command/command.h"
#include "core/command/syntax.h"

namespace holdfast::simulation {

// Returns a value for an argument by its name in the syntax, such as "key" or "milliseconds".
using ValueMaker = std::function<std::string(const ArgNode& argument)>;

// The commands that run by themselves: not the containers.
std::vector<const Command*> runnable_commands();
// The name, and a random choice of arguments that fit the syntax.
std::vector<std::string> words_for(const Command& command, Dice& dice, const ValueMaker& value);
// A request with an argument too many, too few, or a wrong one.
std::vector<std::string> damaged(std::vector<std::string> words, Dice& dice);

}  // namespace holdfast::simulation
