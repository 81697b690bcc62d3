#!/usr/bin/env bash
# try-release.sh first|all: make a release of this tree as it stands, its uncommitted changes too, in a copy: the next version,
# prepared and built. With first it is built for linux/amd64 alone, what has to be refused is tried, and a user of the modules is
# played. With all it is built for all platforms, twice for one of them, which must give the same bytes; the deb is installed in
# a new root of Debian, and the image runs.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/lib.sh

what=$1
[ "$what" = first ] || tools/docker.sh answers || die "no Docker answers; run tools/setup.sh docker"
work=$(mktemp -d -t berth-release.XXXXXX)
server=""
trap 'kill $server 2>/dev/null || true; umount -l "$work/debian/proc" 2>/dev/null || true; rm -rf --one-file-system "$work"' EXIT
unset BERTH_SUITE BERTH_TEST_REPORT BERTH_SUITE_LEDGER BERTH_SUITE_COMMIT MAKEFLAGS # the copy is no step of a plan

git clone -q --shared --no-checkout . "$work/tree"
git -C "$work/tree" config user.name nobody
git -C "$work/tree" config user.email nobody@example.com
git -C "$work/tree" --work-tree="$PWD" add -A
cd "$work/tree"

# commit SUBJECT: all that there is, whatever hooks say.
commit() { git add -A && git commit -qnm "$1" --allow-empty; }

# refused WORDS TARGET VERSION: make refuses with these words, and writes nothing.
refused() {
  local said before
  before=$(git status --porcelain)
  if said=$(make --no-print-directory "$2" VERSION="$3" 2>&1); then die "make $2 VERSION=$3 does not refuse: $1"; fi
  [[ $said == *"$1"* ]] || die "make $2 VERSION=$3 does not say '$1': $said"
  [ "$(git status --porcelain)" = "$before" ] || die "make $2 VERSION=$3 has written something: $(git status --porcelain)"
}

# nightly COMMIT CODE: what make nightly writes.
nightly() {
  mkdir -p out
  printf '{\n  "commit": "%s",\n  "code": %s\n}\n' "$1" "$2" >out/nightly.json
}

git commit -qnm "release: the tree as it stands" --allow-empty
git checkout -q --force HEAD
newest=$(sed -nE '/^## \[[0-9.]+\]/{s/^## \[([0-9.]+)\].*/\1/p;q}' CHANGELOG.md)
version=v0.1.0
[ -z "$newest" ] || version=v${newest%.*}.$((${newest##*.} + 1))
number=${version#v}

if [ "$what" = first ]; then
  refused "is no version" release-prepare 1.2
  refused "below v2" release-prepare v2.0.0
  echo >>README.md
  refused "the tree is not clean" release-prepare "$version"
  git checkout -q README.md
  sed -i '/^## \[Unreleased\]/,/^## \[[0-9]\|^\[Unreleased\]: /{/^- /d}' CHANGELOG.md
  commit "release: nothing to release"
  refused "nothing under [Unreleased]" release-prepare "$version"
fi
sed -i '0,/^## \[Unreleased\]$/s//&\n\n- A release is tried./' CHANGELOG.md
commit "release: something to release"
if [ "$what" = first ]; then
  refused "has no section" release "$version"
  [ -z "$newest" ] || refused "is not newer" release-prepare v0.0.1
fi
make --no-print-directory release-prepare VERSION="$version"
grep -q "^## \[$number\] - 20" CHANGELOG.md || die "CHANGELOG.md has no section of $version"
[ -s "test/rolling/testdata/$version/SHA256SUMS" ] || die "no scripts are kept"
commit "release: prepare $version of all modules"
id=$(git rev-parse HEAD)
if [ "$what" = first ]; then
  refused "is there already" release-prepare "$version"
  refused "there is no out/nightly.json" release "$version"
  nightly "$(git rev-parse HEAD^)" 0
  refused "has to pass on $id" release "$version"
  nightly "$id" 1
  refused "with the exit code 1" release "$version"
  export PLATFORMS=linux/amd64
fi
nightly "$id" 0
make --no-print-directory release VERSION="$version"
changed=$(git status --porcelain)
[ -z "$changed" ] || die "make release has changed the tree: $changed"

files=$PWD/out/release/files
grep -q "A release is tried" out/release/notes.md || die "the notes are not those of CHANGELOG.md"
(cd "$files" && sha256sum --quiet -c SHA256SUMS)
tar -C "$work" -xzf "$files/berth_${number}_linux_amd64.tar.gz"
berth=$work/berth_${number}_linux_amd64/berth
[[ $("$berth" version) == "berth version $version, revision $id, 20"* ]] || die "the program is $("$berth" version)"
if said=$("$berth" demo --web 2>&1); then die "the archive has the demo"; fi
[ "$said" = "berth: the demo is not in this build; with Go: go run github.com/berth-go/berth/cmd/berth@latest demo" ] || die "berth demo: $said"
[[ $(go version -m "$berth") != *miniredis* ]] || die "the archive has the embedded server"
say "the archive's program is $("$berth" version)"

if [ "$what" = first ]; then
  dpkg-deb -x "$files/berth_${number}_amd64.deb" "$work/deb"
  for file in usr/bin/berth usr/share/man/man1/berth-run.1.gz usr/share/zsh/vendor-completions/_berth usr/lib/systemd/system/berth-exporter.service; do
    [ -s "$work/deb/$file" ] || die "the deb has no $file"
  done
  cmp "$berth" "$work/deb/usr/bin/berth" || die "the deb has another program"
  tools/consumer.sh "$PWD/out/release/proxy" "$version"
  exit
fi

cp "$files/SHA256SUMS" "$work/sums"
PLATFORMS=linux/amd64 make --no-print-directory release VERSION="$version" >"$work/log" || die "a second time: $(cat "$work/log")"
(cd "$files" && sha256sum --quiet -c --ignore-missing "$work/sums") || die "a second build gives other bytes"
say "a second build gives the same bytes"

read -r uri release < <(debian) || die "apt has no source of this Debian's release"
debootstrap --variant=minbase --include=bash-completion,man-db,rpm,systemd "$release" "$work/debian" "$uri" >"$work/log" 2>&1 ||
  die "debootstrap: $(tail "$work/log")"
cp "$files/berth_${number}_amd64.deb" "$files/berth-${number}-1.x86_64.rpm" "$work/debian"
# inside COMMAND: run it in the new root, with nothing of this environment.
inside() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root chroot "$work/debian" bash -euc "$1"; }
inside "dpkg -i berth_${number}_amd64.deb" >/dev/null
mount -t proc proc "$work/debian/proc"
[[ $(inside 'berth version') == "berth version $version, "* ]] || die "the deb's program does not run"
for page in berth berth-run berth-pool-set berth-flags; do
  said=$(inside "man --warnings $page 2>&1 >/dev/null") && [ -z "$said" ] || die "man $page: $said"
  [[ $(inside "man $page") == *DESCRIPTION* ]] || die "man $page has no description"
done
# What the shell does at a Tab; compopt works nowhere else.
said=$(inside '. /usr/share/bash-completion/bash_completion; compopt() { :; }; _completion_loader berth || true
  COMP_WORDS=(berth ver) COMP_CWORD=1 COMP_LINE="berth ver" COMP_POINT=9 COMP_TYPE=9; __start_berth; printf "%s\n" "${COMPREPLY[@]}"')
[[ $said == version* ]] || die "bash does not complete 'berth ver': $said"
said=$(inside 'systemd-analyze verify /usr/lib/systemd/system/berth-exporter.service 2>&1') || die "the unit: $said"
[ -z "$said" ] || die "the unit: $said"
said=$(inside "rpm -qlp berth-$number-1.x86_64.rpm" 2>/dev/null)
[[ $said == */usr/bin/berth$'\n'*/usr/share/zsh/site-functions/_berth ]] || die "the rpm has $said"
say "the deb installs in a new root; man, completion and the unit work"

image=berth:$number
docker load -q -i "$files/berth_${number}_linux_amd64.image.tar.gz" >/dev/null
[[ $(docker run --rm "$image" version) == "berth version $version, "* ]] || die "the image does not say its version"
redis-server --port 0 --unixsocket "$work/redis.sock" --unixsocketperm 777 --save '' --appendonly no >"$work/log" &
server=$!
until [ -S "$work/redis.sock" ]; do kill -0 $server || die "redis-server has ended: $(cat "$work/log")"; sleep 0.1; done
docker run --rm -v "$work/redis.sock:/redis.sock" "$image" check --redis unix:///redis.sock || die "berth check in the image"
docker run --rm -v "$work/redis.sock:/redis.sock" "$image" run --redis unix:///redis.sock --once zoned --daily 02:00 --zone Europe/Berlin -- /usr/bin/berth version ||
  die "the image knows no zones"
docker image rm "$image" >/dev/null
say "the image says its version, reaches a server, and knows zones"
