#!/bin/sh
# install_ours.sh DEST PREFIX SOURCE...: our own distributions, built from the checkout without any network, below
# PREFIX as they belong into the environment DEST. The build backend stays in this stage's own Python.
set -eu
dest=$1 prefix=$2
shift 2
quiet="--quiet --disable-pip-version-check --no-deps"
wheels=$(mktemp -d)
# shellcheck disable=SC2086  # a list of words
python -m pip wheel $quiet --no-index --no-build-isolation --wheel-dir "$wheels" "$@"
# shellcheck disable=SC2086
python -m pip --python "$dest/bin/python" install $quiet --no-index --no-cache-dir --no-compile \
    --root-user-action=ignore --prefix "$prefix" "$wheels"/*.whl
"$(dirname "$0")/compile_modules.sh" "$prefix" "$dest"
