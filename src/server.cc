// The main program of the server.
#include "io/program/serve.h"

int main(int argc, char** argv) {
  return holdfast::run_program(argc, argv, [](const holdfast::Options&) {
    holdfast::ProgramParts parts;
    parts.without_data =
        "; no data folder (--dir): no data outlives the process, and tokens start at the clock";
    return parts;
  });
}
