#!/bin/sh
# compile_modules.sh FOLDER [RUNTIME_FOLDER]: byte-compile all modules of an environment. Containers can't write where
# their modules are, so without this every start of a program would compile them again: 3 s for ours, 10 s for the vendor's.
set -eu
python=python
[ ! -x "$1/bin/python" ] || python=$1/bin/python
# A few files of foreign packages are templates or of another Python: those that don't compile are left as they are.
"$python" -m compileall -q -q -j 0 --invalidation-mode unchecked-hash -x '/(sympy|isympy)' -s "$1" -p "${2:-$1}" "$1/lib" || true
