#!/bin/sh
# install_dependencies.sh BUILD_REQUIREMENTS REQUIREMENTS DEST: an environment without pip that holds exactly the hashed
# requirements. What is published as source only is built here, with hashed build tools that stay in this stage.
set -eu
quiet="--quiet --disable-pip-version-check --no-cache-dir"
wheels=$(mktemp -d)
# shellcheck disable=SC2086  # a list of words
python -m pip install $quiet --root-user-action=ignore --require-hashes --only-binary :all: --requirement "$1"
# shellcheck disable=SC2086
python -m pip wheel $quiet --require-hashes --no-build-isolation --requirement "$2" --wheel-dir "$wheels"
python -m venv --without-pip "$3"
# shellcheck disable=SC2086
python -m pip --python "$3/bin/python" install $quiet --root-user-action=ignore --no-index --no-deps --no-compile \
    "$wheels"/*.whl
rm -rf "$wheels"
# Test suites, type stubs and headers: nothing at run time reads them. onnx/backend/test and numpy's are 40 MB.
find "$3/lib" -depth \( -name tests -o -name '*.pyi' -o -name '*.pxd' -o -name '*.h' -o -name '*.proto' \) \
    -exec rm -rf {} +
rm -rf "$3"/lib/python3.*/site-packages/onnx/backend/test
"$(dirname "$0")/compile_modules.sh" "$3"
