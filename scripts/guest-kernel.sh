#!/bin/sh
# Fetches Debian's kernel for a guest into a folder, as vmlinuz, config and lib/modules: guest-kernel.sh FOLDER
# Nothing is installed. A folder that has one already is left as it is.
set -eu

folder=$1
[ -e "$folder/vmlinuz" ] && exit 0
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

package=$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: \(linux-image-[0-9].*\)$/\1/p' | head -n 1)
if [ -z "$package" ]; then
    echo 'guest-kernel: apt knows no linux-image-amd64: `apt-get update` as root' >&2
    exit 1
fi
work=$(mktemp -d "$folder/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
(cd "$work" && apt-get download "$package" >/dev/null && dpkg-deb -x "$package"_*.deb tree)
version=${package#linux-image-}
depmod -b "$work/tree" "$version"
rm -rf "$folder/lib"
mv "$work/tree/lib" "$folder/lib"
mv "$work/tree/boot/config-$version" "$folder/config"
# Last: who finds it finds the rest.
mv "$work/tree/boot/vmlinuz-$version" "$folder/vmlinuz"
echo "$version is in $folder"
