// What the commands of scripts and of functions share.
#pragma once

namespace holdfast {

struct Request;

// Gives the host the limits of the present options.
void adopt_script_limits(Request& r);
// SCRIPT KILL and FUNCTION KILL: ends the running script or function, if it has not written.
void kill_script(Request& r, bool function);

}  // namespace holdfast
