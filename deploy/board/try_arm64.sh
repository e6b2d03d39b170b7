#!/bin/bash
# Proof without a board: installs the wheelhouse in an emulated arm64 system and starts the agent there.
#   sudo deploy/board/try_arm64.sh WORK_FOLDER
# Needs Debian with qemu-user-static and mmdebstrap. The emulated system has Python 3.11, so its wheelhouse is made for
# that; the board's own is `build_wheelhouse.py DEST` (3.10). Emulation tells whether it installs, starts, registers and
# talks, never how fast it is. With BOARDLIFT_ORCHESTRATOR set the agent registers there until Ctrl-C.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(realpath -m "$1")
root=$work/root
python=${PYTHON:-python3}
mkdir -p "$work"
if [ ! -x "$root/usr/bin/python3" ]; then
    suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Codename: $suite" | head -1)
    mmdebstrap --mode=root --variant=extract --architectures=arm64 \
        --include=python3,python3-venv,libstdc++6,libc-bin,bash,coreutils,dash,base-files,sed,grep "$suite" "$root" "$mirror"
    echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd"
    for node in null:3 random:8 urandom:9; do
        [ -e "$root/dev/${node%:*}" ] || mknod -m 666 "$root/dev/${node%:*}" c 1 "${node#*:}"
    done
fi
mountpoint -q /proc/sys/fs/binfmt_misc || mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
[ -e /proc/sys/fs/binfmt_misc/qemu-aarch64 ] ||
    cat /usr/lib/binfmt.d/qemu-aarch64.conf >/proc/sys/fs/binfmt_misc/register
inside() {
    chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/root LANG=C.UTF-8 OPENBLAS_CORETYPE=ARMV8 \
        BOARDLIFT_STATE_DIR=/tmp/state BOARDLIFT_BOARD_ID=arm-1 "$@"
}
version=$(inside python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
"$python" "$here/build_wheelhouse.py" "$root/wheelhouse" --python "$version"
inside /wheelhouse/install.sh --prefix /inst --board-id arm-1
inside /inst/opt/boardlift/venv/bin/boardlift-agent doctor || true
if [ -n "${BOARDLIFT_ORCHESTRATOR:-}" ]; then
    inside BOARDLIFT_ORCHESTRATOR="$BOARDLIFT_ORCHESTRATOR" BOARDLIFT_NATS="${BOARDLIFT_NATS:-}" \
        /inst/opt/boardlift/venv/bin/boardlift-agent serve
fi
