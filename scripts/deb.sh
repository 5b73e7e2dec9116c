#!/bin/sh
# Makes a Debian package of what was built: `make install` into a folder, and dpkg-deb over that.
#
#   BINARY   target/release/braid  the program; braid-volume, which serves, lies beside it
#   VERSION  of Cargo.toml         the package's
#   OUT      target                where braid_VERSION_ARCH.deb goes
#   DEBFULLNAME, DEBEMAIL          its maintainer
#   COMPRESSION xz                 of dpkg-deb
#   LICENCES made by licences.sh   the list of crates and their licences, if it is there already
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
cd "$here"
BINARY=${BINARY:-target/release/braid}
OUT=${OUT:-target}
VERSION=${VERSION:-$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)}
arch=$(dpkg --print-architecture)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
root=$work/root
doc=$root/usr/share/doc/braid
# The same files make the same package, whenever and by whomever.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH
umask 022
maintainer="${DEBFULLNAME:-The braid authors} <${DEBEMAIL:-packages@braid.invalid}>"

PREFIX=/usr DESTDIR=$root BINARY=$BINARY LISTED=no ZSH_DIR=/usr/share/zsh/vendor-completions scripts/install.sh install
mkdir -p "$root/etc/braid"

# Debian's own form of a changelog; what changed is beside it.
printf 'braid (%s) unstable; urgency=medium\n\n  * What changed: CHANGELOG.md.gz beside this file.\n\n -- %s  %s\n' \
    "$VERSION" "$maintainer" "$(date --utc --rfc-email --date "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$doc/changelog.gz"

# Licences: the common one is a file of every Debian system.
rm "$doc/LICENSE-APACHE"
cat packaging/debian/copyright.head >"$doc/copyright"
sed 's/^$/./; s/^/ /' LICENSE-MIT | sed '1i\\nLicense: MIT' >>"$doc/copyright"
if [ -n "${LICENCES:-}" ]; then cat "$LICENCES"; else scripts/licences.sh; fi >"$doc/THIRD-PARTY"
gzip -9n "$doc/THIRD-PARTY"

control=$root/DEBIAN
mkdir "$control"
daemons=$(cd "$root/usr/lib/systemd/system" && find . -type f ! -name '*@.*' -printf '%f\n' | LC_ALL=C sort | tr '\n' ' ')
for script in postinst prerm postrm; do
    # A line that has nothing to name goes.
    if [ -n "$daemons" ]; then
        sed "s/@DAEMONS@/${daemons% }/" "packaging/debian/$script"
    else
        sed 's/[a-z-]* [a-z-]* @DAEMONS@.*$/:/' "packaging/debian/$script"
    fi >"$control/$script"
    chmod 755 "$control/$script"
done
find "$root/etc" -type f | sed "s|^$root||" | LC_ALL=C sort >"$control/conffiles"
[ -s "$control/conffiles" ] || rm "$control/conffiles"

# What a boot from a volume needs is in the initramfs, which is made anew.
[ ! -d "$root/usr/share/initramfs-tools" ] || echo 'activate-noawait update-initramfs' >"$control/triggers"

# What the program is linked against, by the tool that knows, or else what it always is.
depends='libc6, libgcc-s1'
if command -v dpkg-shlibdeps >/dev/null; then
    mkdir -p "$work/debian"
    printf 'Source: braid\n\nPackage: braid\nArchitecture: any\n' >"$work/debian/control"
    found=$(cd "$work" && dpkg-shlibdeps -O "$root/usr/bin/braid" "$root/usr/libexec/braid/braid-volume" 2>/dev/null | sed -n 's/^shlibs:Depends=//p') || found=''
    depends=${found:-$depends}
fi
size=$(du -k -s --exclude DEBIAN "$root" | cut -f 1)
sed -e "s/@VERSION@/$VERSION/" -e "s/@ARCH@/$arch/" -e "s/@SIZE@/$size/" -e "s/@DEPENDS@/$depends/" \
    -e "s/@MAINTAINER@/$maintainer/" \
    packaging/debian/control >"$control/control"
(cd "$root" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums)

find "$root" -newermt "@$SOURCE_DATE_EPOCH" -print0 | xargs -0r touch --no-dereference --date "@$SOURCE_DATE_EPOCH"
mkdir -p "$OUT"
package=$OUT/braid_${VERSION}_$arch.deb
dpkg-deb --root-owner-group "-Z${COMPRESSION:-xz}" --build "$root" "$package" >&2
echo "$package"
