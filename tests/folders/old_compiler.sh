#!/bin/sh
# Compiles a file of an earlier server: old_compiler.sh PCH COMPILER ARGUMENT... A file whose flags do not
# go with the precompiled header is compiled without it.
pch=$1
shift
"$@" -fvisibility=default -include-pch "$pch" 2>/dev/null || "$@"
