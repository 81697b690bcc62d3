#!/usr/bin/env bash
# release.sh prepare|build VERSION: make a release of all modules.
# prepare writes what the commit of a release has: the kept scripts and exports, the section of CHANGELOG.md, and the versions that the
# modules require of each other. It refuses before it writes anything.
# build changes no tracked file. It writes into out/release:
#   notes.md   the section of CHANGELOG.md
#   files/     an archive for each of PLATFORMS, deb, rpm and image for those of Linux, SBOMs, and SHA256SUMS
#   proxy/     the modules, as a file GOPROXY
# and prints how to tag. All is built in a clone of the commit with the tags of the release, so that the go command itself stamps
# version and revision into the programs, as it does for whoever builds a tag; a second run writes the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/lib.sh

what=${1:-} version=${2:-}
number=${version#v}
module=github.com/berth-go/berth
modules=(. cmd/berth contrib/*) # that others may require; a tag follows those of what the module requires
platforms=${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64}

# path FOLDER: the module in it. tag FOLDER: its tag.
path() { if [ "$1" = . ]; then echo $module; else echo "$module/$1"; fi; }
tag() { if [ "$1" = . ]; then echo "$version"; else echo "$1/$version"; fi; }

# section NAME: what CHANGELOG.md has under it.
section() {
  awk -v head="## [$1]" '/^## |^\[[^]]*\]: / { on = index($0, head) == 1; next } on' CHANGELOG.md | sed '/./,$!d'
}

prepare() {
  local last today kept=test/rolling/testdata/$version
  ! git rev-parse -q --verify "refs/tags/$version" >/dev/null || die "the tag $version is there already"
  [ ! -e "$kept" ] || die "$kept is there already"
  [ -z "$(section "$number")" ] || die "CHANGELOG.md has $version already"
  section Unreleased | grep '^- ' >/dev/null || die "CHANGELOG.md has nothing under [Unreleased]: there is nothing to release"
  last=$(sed -nE '/^## \[[0-9]/{s/^## \[([^]]*)\].*/\1/p;q}' CHANGELOG.md)
  [ "$(printf '%s\n' "$last" "$number" | tr - '~' | sort -V | tail -n 1)" = "${number/-/\~}" ] ||
    die "VERSION: $version is not newer than v$last"

  make --no-print-directory keep-scripts keep-api VERSION="$version"
  today=$(date -u +%F)
  sed -i -E "s|^## \[Unreleased\]\$|&\n\n## [$number] - $today|
    s|^\[Unreleased\]: .*|[Unreleased]: https://$module/compare/$version...HEAD\n[$number]: https://$module/releases/tag/$version|" CHANGELOG.md
  git ls-files -z '*go.mod' go.work | xargs -0 sed -i -E \
    "s#($module(/[a-z/]+)?) v[0-9]+\.[0-9]+\.[0-9]+(-[a-z][0-9a-z.]*)?( |\$)#\1 $version\4#"
  say "prepared; look at it, then:" "" \
    "  git add -A && git commit -m 'release: prepare $version of all modules'" \
    "  make nightly && make release VERSION=$version"
}

# recorded NAME: what the last make nightly has written of itself.
recorded() { sed -nE "s/^ *\"$1\": \"?([^\",]*)\"?,?\$/\1/p" out/nightly.json; }

# stage FOLDER...: give all files the time of the commit.
stage() { find "$@" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +; }

# packed FOLDER [NAME...]: print a tar of it that is the same each time.
packed() {
  tar -C "$1" --format=ustar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -cf - "${@:2}"
}

sum() { sha256sum "$1" | cut -d' ' -f1; }

# image ARCH: what docker load takes. The zones are in the program.
image() {
  local root=$work/image layer=$work/layers/layer.tar
  mkdir -p "$root/usr/bin" "$root/etc/ssl/certs" "$work/layers"
  cp "$work/files/berth" "$root/usr/bin"
  cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs"
  packed "$root" etc usr >"$layer"
  cat >"$work/layers/config.json" <<JSON
{"architecture": "$1", "os": "linux", "created": "$(date -u -d "@$SOURCE_DATE_EPOCH" +%FT%TZ)",
 "config": {"Entrypoint": ["/usr/bin/berth"], "User": "65534:65534", "Env": ["PATH=/usr/bin"],
  "Labels": {"org.opencontainers.image.source": "https://$module", "org.opencontainers.image.version": "$version",
   "org.opencontainers.image.revision": "$commit", "org.opencontainers.image.licenses": "Apache-2.0"}},
 "rootfs": {"type": "layers", "diff_ids": ["sha256:$(sum "$layer")"]}}
JSON
  echo "[{\"Config\": \"config.json\", \"RepoTags\": [\"berth:$number\"], \"Layers\": [\"layer.tar\"]}]" >"$work/layers/manifest.json"
  packed "$work/layers" config.json layer.tar manifest.json | gzip -9n >"$files/berth_${number}_linux_$1.image.tar.gz"
}

# platform OS ARCH: all that there is for it.
platform() {
  local name=berth_${number}_$1_$2 program=$work/files/berth exe=""
  [ "$1" != windows ] || exe=.exe
  say "building $name"
  GOOS=$1 GOARCH=$2 go -C "$work/tree/cmd/berth" build -modfile="$work/berth.mod" -mod=mod -buildvcs=true -tags=nodemo \
    -ldflags='-s -w' -o "$program" . 2>"$work/log" || die "$(cat "$work/log")"
  "$work/bin/cyclonedx-gomod" bin -json -std -noserial -notimestamp -output "$files/$name.sbom.json" "$program" 2>"$work/log" ||
    die "cyclonedx-gomod: $(cat "$work/log")"
  if [ ! -e "$work/files/man" ]; then # those of the first one
    mkdir "$work/files/completions"
    "$program" man "$work/files/man"
    "$program" completion bash >"$work/files/completions/berth.bash"
    "$program" completion zsh >"$work/files/completions/_berth"
    "$program" completion fish >"$work/files/completions/berth.fish"
  fi
  rm -rf "$work/archive" "$work/package"
  mkdir -p "$work/archive/$name"
  cp -r "$work/tree/"{LICENSE,README.md} "$work/files/"{man,completions} "$work/archive/$name"
  cp "$program" "$work/archive/$name/berth$exe"
  stage "$work/archive"
  if [ "$1" = windows ]; then
    (cd "$work/archive" && find . -type f | LC_ALL=C sort | TZ=UTC zip -qX9@ "$files/$name.zip")
  else
    packed "$work/archive" "$name" | gzip -9n >"$files/$name.tar.gz"
  fi
  if [ "$1" = linux ]; then
    cp -r "$work/files" "$work/package"
    cp "$work/tree/"{LICENSE,deploy/systemd/berth-exporter.service} "$work/package"
    gzip -9n "$work/package/man/"*
    stage "$work/package"
    for kind in deb rpm; do
      (cd "$work/package" && ARCH=$2 VERSION=$number "$work/bin/nfpm" package -f "$work/tree/tools/release/nfpm.yaml" -p $kind -t "$files") \
        >"$work/log" 2>&1 || die "nfpm: $(cat "$work/log")"
    done
    image "$2"
  fi
}

build() {
  local folder known pair out=$PWD/out/release
  commit=$(git rev-parse HEAD)
  [ -n "$(section "$number")" ] || die "CHANGELOG.md has no section $number: run make release-prepare VERSION=$version"
  grep -qE "$module $version\$" cmd/berth/go.mod || die "cmd/berth/go.mod does not require $module $version"
  [ -e out/nightly.json ] || die "there is no out/nightly.json: run make nightly"
  [ "$(recorded commit) $(recorded code)" = "$commit 0" ] ||
    die "make nightly has to pass on $commit; out/nightly.json is of $(recorded commit), with the exit code $(recorded code)"
  for folder in "${modules[@]}"; do
    known=$(git rev-parse -q --verify "refs/tags/$(tag "$folder")^{commit}") || continue
    [ "$known" = "$commit" ] || die "the tag $(tag "$folder") is there already, on $known"
  done

  work=$(mktemp -d) files=$out/files
  trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
  rm -rf "$out" && mkdir -p "$files" "$work/files" "$work/bin" "$out/proxy/$(dirname $module)"
  section "$number" >"$out/notes.md"
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
  export SOURCE_DATE_EPOCH CGO_ENABLED=0 GOFLAGS='-trimpath -modcacherw' GOWORK=off
  go -C tools/release build -o "$work/bin/" tool 2>"$work/log" || die "$(cat "$work/log")"

  git clone -q --no-tags --shared . "$work/tree"
  git -C "$work/tree" checkout -q --detach "$commit"
  for folder in "${modules[@]}"; do git -C "$work/tree" tag "$(tag "$folder")"; done
  # The go command takes the modules from that clone, into a cache of modules that nobody has after this.
  GOPROXY="file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)"
  export GOPROXY GOMODCACHE=$work/cache GONOPROXY=$module GONOSUMDB=$module,$(go env GONOSUMDB) GIT_CONFIG_GLOBAL=$work/gitconfig
  git config --global "url.file://$work/tree.insteadOf" "https://$module"
  git config --global safe.directory '*'
  for folder in "${modules[@]}"; do (cd "$work" && go mod download "$(path "$folder")@$version"); done
  cp -r "$work/cache/cache/download/$module" "$out/proxy/$(dirname $module)"
  find "$out/proxy" -name '*.lock' -delete
  find "$out/proxy" -name @v -exec sh -c 'echo "$2" >"$1/list"' - {} "$version" \;
  cp "$work/tree/cmd/berth/go.mod" "$work/berth.mod"
  cp "$work/tree/cmd/berth/go.sum" "$work/berth.sum"

  for pair in $platforms; do platform "${pair%/*}" "${pair#*/}"; done
  (cd "$files" && sha256sum -- * >"$work/sums" && mv "$work/sums" SHA256SUMS)
  say "" "in out/release/files:"
  (cd "$files" && stat -c '  %10s  %n' -- *)
  say "" "If all is well:" ""
  for folder in "${modules[@]}"; do say "  git tag -m 'Berth $version' $(tag "$folder") $commit"; done
  # GitHub tells no workflow of tags that come more than three at once.
  say "  git push origin $version" "  git push origin$(for folder in "${modules[@]:1}"; do printf ' %s' "$(tag "$folder")"; done)"
}

# Of v2 on, the paths of the modules would have to end with it.
[[ $version =~ ^v[01]\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[a-z][0-9a-z]*(\.[0-9a-z]+)*)?$ ]] ||
  die "VERSION: '$version' is no version like v0.1.0, and below v2"
costs=()
[ "$what" != build ] || costs=(':!internal/tools/suite/costs.json') # make nightly writes it, and build takes the commit
changed=$(git status --porcelain -- . "${costs[@]}")
[ -z "$changed" ] || die "the tree is not clean:"$'\n'"$changed"
case $what in
  prepare | build) "$what" ;;
  *) die "want prepare or build" ;;
esac
