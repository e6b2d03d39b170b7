#!/usr/bin/env bash
# `make compose-test`: the real images, the real compose file, a real Docker Engine. Takes down everything it brought up.
# Root on Debian; about 8 minutes on 2 quiet cores. BOARDLIFT_ENGINE=system uses the engine and the base images that are there.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
WORK=$(mktemp -d "${TMPDIR:-/tmp}/boardlift-containers.XXXXXX")
export WORK BOARDLIFT_SECRETS=$WORK/secrets

finish() {
    code=$?
    trap - EXIT INT TERM
    "$WORK/engine/bin/docker" compose -f "$root/deploy/compose.yaml" -f "$root/deploy/compose.cluster.yaml" \
        down -v -t 5 >/dev/null 2>&1 || true
    engine_stop || true
    rm -rf "$WORK"
    exit "$code"
}
engine_stop() { :; }
trap finish EXIT INT TERM

START=$(date +%s.%N)
export START
source "$here/engine.sh" "$WORK/engine"
cd "$root"
# The client as a user installs it; the development environment only builds the example model.
python=$root/.venv/bin/python
"$python" -m venv "$WORK/client"
"$WORK/client/bin/python" -m pip install -q --disable-pip-version-check --require-hashes -r requirements/client.txt
"$WORK/client/bin/python" -m pip install -q --disable-pip-version-check --no-deps ./client
mkdir "$WORK/bin"
ln -s "$WORK/client/bin/boardlift" "$WORK/bin/boardlift"
say "client installed"
export PATH="$WORK/bin:$WORK/engine/bin:$root/.venv/bin:$PATH"
"$python" "$here/drive.py" "$@"
