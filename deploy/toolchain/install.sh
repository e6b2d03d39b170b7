#!/bin/sh
# Installs the vendor toolchain for RDK X5 into its own folder: install.sh DEST [--probe]
# Needs any Python >= 3.8 to start; finds or fetches the Python 3.10 the vendor's wheels ask for.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
for candidate in "${PYTHON:-}" python3 python3.10 python3.11 python3.12 python3.13 python; do
    [ -n "$candidate" ] || continue
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 8))' >/dev/null 2>&1; then
        exec "$candidate" "$here/install_toolchain.py" "$@"
    fi
done
echo "boardlift: no toolchain: no Python >= 3.8 found to run the installer; install python3 and run this again" >&2
exit 3
