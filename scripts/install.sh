#!/bin/sh
# Puts what was built where a system has it, or takes it away again: install.sh install|uninstall
#
#   PREFIX    /usr/local  below which all of it lies; units look for the program there
#   DESTDIR               put in front of every path, for who makes a package
#   BINARY    target/release/braid  the program; braid-volume, which serves, lies beside it
#   ZSH_DIR   PREFIX/share/zsh/site-functions
#   SYSCONFDIR  /etc, if PREFIX is /usr or /usr/local; else PREFIX/etc
#
# Files of packaging/ are taken by what they are called: *.service, *.socket, *.timer, *.target, *.rules,
# *.toml (as SYSCONFDIR/braid/NAME, if there is none, and as an example), system-generators, initramfs-tools and
# dracut; other folders are examples. What was put where stands in PREFIX/share/braid/installed, and `uninstall` removes that, but for a
# configuration that was changed, and folders that are empty then.
# Nothing else is changed: neither systemd nor udev is told.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
PREFIX=${PREFIX:-/usr/local}
DESTDIR=${DESTDIR:-}
BINARY=${BINARY:-$here/target/release/braid}
case $PREFIX in
    /*) ;;
    *) echo "install.sh: PREFIX=$PREFIX is no absolute path" >&2; exit 2 ;;
esac
case $PREFIX in
    /usr | /usr/local) etc=${SYSCONFDIR:-/etc} ;;
    *) etc=${SYSCONFDIR:-$PREFIX/etc} ;;
esac
share=$PREFIX/share
doc=$share/doc/braid
installed=$DESTDIR$share/braid/installed
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

put() { # MODE FILE PATH
    install -D -m "$1" "$2" "$DESTDIR$3"
    echo "$3" >>"$work/list"
}

# A file whose text says where the program and its documentation are.
put_located() { # FILE PATH [MODE]
    sed -e "s|/usr/bin/braid|$PREFIX/bin/braid|g" \
        -e "s|/usr/libexec/braid|$PREFIX/libexec/braid|g" -e "s|/usr/share/doc/braid|$doc|g" "$1" >"$work/located"
    put "${3:-644}" "$work/located" "$2"
}

# All files below a folder.
put_folder() { # FOLDER PATH [MODE]
    find "$1" -type f | LC_ALL=C sort | while read -r one; do
        put_located "$one" "$2/${one#"$1"/}" "${3:-644}"
    done
}

install_all() {
    volume=$(dirname "$BINARY")/braid-volume
    for program in "$BINARY" "$volume"; do
        if [ ! -x "$program" ]; then
            echo "install.sh: there is no program $program; next: make build" >&2
            exit 1
        fi
    done
    cp "$BINARY" "$work/braid"
    cp "$volume" "$work/braid-volume"
    strip --strip-unneeded --remove-section=.comment --remove-section=.note "$work/braid" "$work/braid-volume"
    put 755 "$work/braid" "$PREFIX/bin/braid"
    put 755 "$work/braid-volume" "$PREFIX/libexec/braid/braid-volume"

    for file in "$here"/packaging/*; do
        name=${file##*/}
        case $name in
            *.service | *.socket | *.timer | *.target) put_located "$file" "$PREFIX/lib/systemd/system/$name" ;;
            *.rules) put_located "$file" "$PREFIX/lib/udev/rules.d/$name" ;;
            *.toml)
                # The one to be changed comes first in the list: it is compared with the other.
                [ -e "$DESTDIR$etc/braid/$name" ] || put_located "$file" "$etc/braid/$name"
                put_located "$file" "$doc/examples/$name"
                ;;
            debian) ;;
            system-generators) put_folder "$file" "$PREFIX/lib/systemd/system-generators" 755 ;;
            # A root file system on a volume. What makes an initramfs looks below /usr only.
            initramfs-tools) put_folder "$file" "$share/initramfs-tools" 755 ;;
            dracut) put_folder "$file" "$PREFIX/lib/dracut/modules.d" 755 ;;
            *) [ ! -d "$file" ] || put_folder "$file" "$doc/examples/$name" ;;
        esac
    done

    mkdir "$work/man"
    "$work/braid" man --into "$work/man" --docs "$here/docs"
    for page in "$work/man"/*; do
        gzip -9n "$page"
        put 644 "$page.gz" "$share/man/man${page##*.}/${page##*/}.gz"
    done
    "$work/braid" completions bash >"$work/bash"
    "$work/braid" completions zsh >"$work/zsh"
    "$work/braid" completions fish >"$work/fish"
    put 644 "$work/bash" "$share/bash-completion/completions/braid"
    put 644 "$work/zsh" "${ZSH_DIR:-$share/zsh/site-functions}/_braid"
    put 644 "$work/fish" "$share/fish/vendor_completions.d/braid.fish"

    # The index of docs/ has the name of the README, which takes its place.
    for page in "$here"/docs/[!R]*.md "$here/README.md"; do
        put 644 "$page" "$doc/${page##*/}"
    done
    [ ! -d "$here/docs/api" ] || put_folder "$here/docs/api" "$doc/api"
    for licence in LICENSE-MIT LICENSE-APACHE; do
        put 644 "$here/$licence" "$doc/$licence"
    done
    gzip -9nc "$here/CHANGELOG.md" >"$work/CHANGELOG.md.gz"
    put 644 "$work/CHANGELOG.md.gz" "$doc/CHANGELOG.md.gz"
}

case ${1:-} in
    install)
        : >"$work/list"
        install_all
        # Of an earlier version, what this one does not have.
        if [ -e "$installed" ]; then
            LC_ALL=C sort "$installed" >"$work/before"
            LC_ALL=C sort "$work/list" | LC_ALL=C comm -23 "$work/before" - | while read -r path; do
                case $path in "$etc"/*) echo "$path" >>"$work/list" ;; *) rm -f "$DESTDIR$path" ;; esac
            done
        fi
        [ "${LISTED:-yes}" = no ] || install -D -m 644 "$work/list" "$installed"
        ;;
    uninstall)
        if [ ! -e "$installed" ]; then
            echo "install.sh: nothing is installed below $DESTDIR$PREFIX: there is no $installed" >&2
            exit 1
        fi
        { cat "$installed"; echo "$share/braid/installed"; } >"$work/list"
        while read -r path; do
            case $path in
                "$etc"/*) cmp -s "$DESTDIR$path" "$DESTDIR$doc/examples/${path##*/}" || continue ;;
            esac
            rm -f "$DESTDIR$path"
        done <"$work/list"
        # Folders that only braid had, from the innermost on.
        while read -r path; do
            folder=${path%/*}
            while [ "$folder" != "$PREFIX" ] && [ "$folder" != "$etc" ] && [ -n "$folder" ]; do
                case $folder in
                    */braid | */braid/*) rmdir "$DESTDIR$folder" 2>/dev/null || break ;;
                    *) break ;;
                esac
                folder=${folder%/*}
            done
        done <"$work/list"
        ;;
    *)
        echo "usage: [PREFIX=…] [DESTDIR=…] install.sh install|uninstall" >&2
        exit 2
        ;;
esac
