#!/bin/sh
# backup.sh save FILE.tar | restore FILE.tar: the state of a server: jobs (NATS), artifacts and results of stages.
# Both stop the stack for the time of the copy and start it again; running jobs go on where they were.
# Not in it: deploy/secrets (copy that folder to a safe place once) and the cache of the simulated board.
set -eu
what=${1:?save or restore} file=${2:?file}
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
compose() { docker compose -f "$here/compose.yaml" "$@"; }
volumes="nats orchestrator transform compiler"
mounts=
for volume in $volumes; do mounts="$mounts --volume boardlift_$volume:/state/$volume"; done
copy() { # the image of NATS, which every server has, brings tar
    # shellcheck disable=SC2086  # a list of words
    docker run --rm --interactive --network none --user 0:0 --entrypoint "$1" $mounts \
        "boardlift/nats:${BOARDLIFT_VERSION:-0.1.0}" ${2:+"$2"} ${3:+"$3"} ${4:+"$4"} ${5:+"$5"} ${6:+"$6"}
}
case $what in
save)
    compose stop
    umask 077
    copy tar -c -C /state . >"$file.partial"
    mv "$file.partial" "$file"
    ;;
restore)
    [ -s "$file" ] || { echo "no backup in $file" >&2; exit 2; }
    compose create --no-build
    compose stop
    copy sh -c 'rm -rf /state/*/* /state/*/.[!.]*'
    copy tar -x -C /state <"$file"
    ;;
*) echo "usage: $0 save|restore FILE.tar" >&2; exit 2 ;;
esac
compose up -d --wait --no-build
