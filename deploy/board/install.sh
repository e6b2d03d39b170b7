#!/bin/sh
# Installs the board agent from the wheelhouse this script lies in. Run as root on the board:
#   ./install.sh --board-id x5-lab-3 [--orchestrator HOST:7400 --nats tls://HOST:4222] [--label place=lab-1]
#       [--allow-governor 1]     # runs may ask for a clock governor; also for an agent that is there already
# For tests and images: --prefix DIR puts everything below DIR and leaves users, groups and systemd alone.
# Running it again upgrades; /etc/boardlift/agent.env is never overwritten.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
prefix='' governor='' board='' orchestrator='' nats='' labels='' python=${PYTHON:-python3}
fail() { echo "install.sh: $1" >&2; exit 2; }
while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || fail "$1 needs a value"
    case $1 in
        --prefix) prefix=$2 ;;
        --allow-governor) governor=$2 ;;
        --board-id) board=$2 ;;
        --orchestrator) orchestrator=$2 ;;
        --nats) nats=$2 ;;
        --label) labels=${labels:+$labels,}$2 ;;
        *) fail "unknown option $1" ;;
    esac
    shift 2
done
case $board in
    '' | *[!a-z0-9-]*) fail "--board-id must be given: lower-case letters, digits, hyphens" ;;
esac
case $governor in '' | 1) ;; *) fail "--allow-governor takes 1" ;; esac
[ ${#board} -le 40 ] || fail "--board-id has at most 40 characters"
for value in "$orchestrator" "$nats" "$labels"; do
    case $value in *[!A-Za-z0-9.,:/=_-]*) fail "odd characters in '$value'" ;; esac
done
[ -n "$prefix" ] || [ "$(id -u)" = 0 ] || fail "run as root, or give --prefix"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || fail "Python 3.10 or newer is needed, $python is older"
(cd "$here" && sha256sum --check --quiet SHA256SUMS) || fail "the wheelhouse is damaged: copy it again"

opt=$prefix/opt/boardlift etc=$prefix/etc/boardlift
mkdir -p "$opt" "$etc"
# Built beside and swapped in, so that a broken upgrade leaves the running version.
rm -rf "$opt/venv.new"
"$python" -m venv --without-pip "$opt/venv.new"
set -- "$here"/pip-*.whl
PYTHONPATH=$1 "$opt/venv.new/bin/python" -m pip install --quiet --no-index --find-links "$here" \
    --disable-pip-version-check --no-compile boardlift-board-agent
if ls "$here"/onnxruntime-*.whl >/dev/null 2>&1; then
    PYTHONPATH=$1 "$opt/venv.new/bin/python" -m pip install --quiet --no-index --find-links "$here" \
        --disable-pip-version-check --no-compile onnxruntime
fi
sed -i "s|$opt/venv\\.new|${opt#"$prefix"}/venv|g" "$opt"/venv.new/bin/boardlift-* 2>/dev/null || true
[ -z "$prefix" ] || sed -i "s|^#!${opt#"$prefix"}|#!$opt|" "$opt"/venv.new/bin/boardlift-*
rm -rf "$opt/venv.old"
[ ! -d "$opt/venv" ] || mv "$opt/venv" "$opt/venv.old"
mv "$opt/venv.new" "$opt/venv"
rm -rf "$opt/venv.old"

if [ ! -e "$etc/agent.env" ]; then
    sed -e "s|^BOARDLIFT_BOARD_ID=.*|BOARDLIFT_BOARD_ID=$board|" \
        -e "s|^BOARDLIFT_ORCHESTRATOR=.*|BOARDLIFT_ORCHESTRATOR=$orchestrator|" \
        -e "s|^BOARDLIFT_NATS=.*|BOARDLIFT_NATS=$nats|" "$here/agent.env" >"$etc/agent.env"
    [ -z "$labels" ] || echo "BOARDLIFT_LABELS=$labels" >>"$etc/agent.env"
    chmod 0640 "$etc/agent.env"
fi
[ -z "$governor" ] || install -D -m 0644 "$here/governor.conf" \
    "$prefix/etc/systemd/system/boardlift-agent.service.d/governor.conf"
if [ -n "$prefix" ]; then
    install -D -m 0644 "$here/boardlift-agent.service" "$prefix/etc/systemd/system/boardlift-agent.service"
    echo "installed below $prefix"
    exit 0
fi
id boardlift >/dev/null 2>&1 || useradd --system --home-dir /var/lib/boardlift --shell /usr/sbin/nologin boardlift
for device in /dev/bpu /dev/bpu_core0 /dev/ion; do
    [ -e "$device" ] || continue
    group=$(stat -c %G "$device")
    [ "$group" = root ] || usermod --append --groups "$group" boardlift
done
# Device files that only root may open get a group of their own.
cat >/etc/udev/rules.d/60-boardlift.rules <<'RULES'
KERNEL=="bpu*", GROUP="boardlift", MODE="0660"
KERNEL=="ion", GROUP="boardlift", MODE="0660"
RULES
udevadm control --reload && udevadm trigger --subsystem-match=misc || true
chown root:boardlift "$etc" "$etc/agent.env"
chmod 0750 "$etc"
install -m 0644 "$here/boardlift-agent.service" /etc/systemd/system/boardlift-agent.service
systemctl daemon-reload
systemctl enable --now boardlift-agent.service
systemctl --no-pager --lines=5 status boardlift-agent.service || true
