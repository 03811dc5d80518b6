#!/bin/sh
# Installs Lanyard from its tarball, upgrades it in place, and removes it again.
set -eu

usage() {
    cat <<'TEXT'
Install Lanyard from a tarball, without root

Usage: sh install.sh [--prefix DIR] [--sums FILE] TARBALL
       sh install.sh [--prefix DIR]              from the unpacked tarball this script is in
       sh install.sh [--prefix DIR] --uninstall

  --prefix DIR   where bin/ and share/ are [default: ~/.local]
  --sums FILE    checksums to verify the tarball with [default: SHA256SUMS beside it]
  --uninstall    remove what was installed; sessions and settings stay

Run it again to upgrade. Running agents and a running daemon are not disturbed.
TEXT
}

# fail CODE WHAT ADVICE
fail() {
    printf 'error: %s [%s]\n  try: %s\n' "$2" "$1" "$3" >&2
    exit 1
}

say() { printf '%s\n' "$*" >&2; }

prefix=${HOME:-}/.local
sums='' tarball='' uninstall=no scratch=''
while [ $# -gt 0 ]; do
    case $1 in
        --prefix | --sums)
            [ $# -ge 2 ] || fail usage "$1 needs a value" 'see --help'
            if [ "$1" = --prefix ]; then prefix=$2; else sums=$2; fi
            shift 2 ;;
        --uninstall) uninstall=yes; shift ;;
        -h | --help) usage; exit 0 ;;
        -*) fail usage "$1 is not an option" 'see --help' ;;
        *)
            [ -z "$tarball" ] || fail usage 'more than one tarball is named' 'name one'
            tarball=$1; shift ;;
    esac
done
case $prefix in
    /.local) fail usage 'HOME is not set' 'name a folder with --prefix' ;;
    /*) ;;
    *) prefix=$(pwd)/$prefix ;;
esac
# Every file that an installation put into the prefix, one path a line.
list=$prefix/share/lanyard/installed-files

# Removes the files of a list, and the folders that are empty then.
remove() {
    while IFS= read -r file; do
        rm -f "$prefix/$file"
        folder=$(dirname "$file")
        while [ "$folder" != . ] && rmdir "$prefix/$folder" 2>/dev/null; do folder=$(dirname "$folder"); done
    done
}

if [ $uninstall = yes ]; then
    [ -f "$list" ] || fail not_installed "no installation is in $prefix" 'name its folder with --prefix'
    # Read whole before the list itself is removed.
    files=$(cat "$list")
    printf '%s\nshare/lanyard/installed-files\n' "$files" | remove
    say "removed Lanyard from $prefix; sessions and settings are where they were"
    exit 0
fi

checksum() {
    if command -v sha256sum >/dev/null; then sha256sum "$1"
    elif command -v shasum >/dev/null; then shasum -a 256 "$1"
    else fail checksum_tool_missing 'neither sha256sum nor shasum is installed' 'install coreutils'
    fi | cut -d ' ' -f 1
}

verify() {
    [ -f "$tarball" ] || fail tarball_missing "there is no file $tarball" 'name the tarball'
    [ -n "$sums" ] || sums=$(dirname "$tarball")/SHA256SUMS
    [ -f "$sums" ] || fail checksums_missing "there is no file $sums" 'put SHA256SUMS beside the tarball, or name it with --sums'
    name=$(basename "$tarball")
    wanted=$(while read -r sum file; do [ "$file" != "$name" ] || printf '%s' "$sum"; done <"$sums")
    [ -n "$wanted" ] || fail checksum_missing "$sums does not list $name" 'take both files from the same release'
    found=$(checksum "$tarball")
    [ "$found" = "$wanted" ] || fail checksum_wrong "$name has the checksum $found and not $wanted" 'download it again'
}

trap '[ -z "$scratch" ] || rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
mkdir -p "$prefix" 2>/dev/null || fail prefix_unwritable "cannot write to $prefix" 'name another folder with --prefix'
[ -w "$prefix" ] || fail prefix_unwritable "cannot write to $prefix" 'name another folder with --prefix'
prefix=$(cd "$prefix" && pwd)
# Inside the prefix, so that files are moved within one file system.
scratch=$(mktemp -d "$prefix/.lanyard-install.XXXXXX")
if [ -n "$tarball" ]; then
    verify
    gzip -dc "$tarball" | tar -xf - -C "$scratch" || fail tarball_damaged "cannot unpack $tarball" 'download it again'
    from=$(echo "$scratch"/lanyard-*)
else
    from=$(cd "$(dirname "$0")" && pwd)
fi
[ -x "$from/bin/lanyard" ] || fail tarball_foreign "$from has no bin/lanyard" 'name the tarball of a release'
version=$("$from/bin/lanyard" --version) || fail program_unusable 'the program does not run on this machine' \
    'take the tarball of this platform; on Linux it needs glibc'

# Each file is written beside its place and renamed into it: a running program keeps the file it was started from.
put() {
    mkdir -p "$prefix/$(dirname "$1")"
    new=$prefix/$(dirname "$1")/.$(basename "$1").new.$$
    case $1 in
        *.service) sed "s|@LANYARD@|$(printf '%s' "\"$prefix/bin/lanyard\"" | sed 's/[\\&|]/\\&/g')|" "$from/$1" >"$new" ;;
        *) cp "$from/$1" "$new" ;;
    esac
    case $1 in bin/*) chmod 755 "$new" ;; *) chmod 644 "$new" ;; esac
    mv -f "$new" "$prefix/$1"
}

# bin/lanyard is last: it is the one that makes use of the others.
files=$(cd "$from" && find bin share -type f | sort -r)
old=''
[ ! -f "$list" ] || old=$(cat "$list")
printf '%s\n' "$files" | { while IFS= read -r file; do [ "$file" = bin/lanyard ] || put "$file"; done; }
put bin/lanyard
mkdir -p "$(dirname "$list")"
printf '%s\n' "$files" >"$list.new" && mv -f "$list.new" "$list"
# Files of the version before that this one has no more.
if [ -n "$old" ]; then
    printf '%s\n' "$old" | { while IFS= read -r file; do
        printf '%s\n' "$files" | grep -qxF "$file" || printf '%s\n' "$file"
    done; } | remove
fi

say "installed $version into $prefix"
case :${PATH:-}: in
    *":$prefix/bin:"*) say "$prefix/bin is on the PATH: start with \`lanyard\`" ;;
    *) say "$prefix/bin is not on the PATH; add it: export PATH=\"$prefix/bin:\$PATH\"" ;;
esac
if [ -n "$old" ]; then
    say 'a daemon that runs is still the old one; agents keep running while it restarts: `lanyard down && lanyard up --detach`'
fi
