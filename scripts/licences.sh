#!/bin/sh
# What crates the program is made of: their versions and licences, and the texts of these, each once.
# Of what is linked: neither what only tests use nor what runs when it is built.
set -eu

cd "$(dirname "$0")/.."
target=$(rustc -vV | sed -n 's/^host: //p')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

${CARGO:-cargo} tree --locked --package braid --target "$target" --edges normal,no-proc-macro \
    --prefix none --format '{p}|{l}' | sed 's/ (\*)$//' | grep -v '^braid' | sed 's/ v/|/; s/ (proc-macro)//' \
    | LC_ALL=C sort -u >"$work/crates"
[ -s "$work/crates" ] || { echo "licences.sh: no crate was found" >&2; exit 1; }

echo "braid has code of these crates, from https://crates.io:"
echo
while IFS='|' read -r crate version licence; do
    printf '%s %s: %s\n' "$crate" "$version" "$licence"
done <"$work/crates"
echo
echo "of Rust's standard library (MIT OR Apache-2.0), and of SQLite (public domain), which libsqlite3-sys brings."

mkdir "$work/texts"
while IFS='|' read -r crate version licence; do
    for folder in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/"$crate-$version"; do
        for text in "$folder"/LICEN[CS]E* "$folder"/COPYING* "$folder"/COPYRIGHT* "$folder"/NOTICE*; do
            [ -f "$text" ] || continue
            sum=$(sha256sum <"$text" | cut -d ' ' -f 1)
            [ -e "$work/texts/$sum" ] || cp "$text" "$work/texts/$sum"
            echo "$crate" >>"$work/texts/$sum.of"
        done
    done
done <"$work/crates"
for crates in "$work"/texts/*.of; do
    [ -e "$crates" ] || { echo "licences.sh: the crates' sources are not there; next: cargo fetch" >&2; exit 1; }
    printf '\n%s\n\n' "==== $(LC_ALL=C sort -u "$crates" | tr '\n' ' ' | sed 's/ $//'):"
    cat "${crates%.of}"
done
