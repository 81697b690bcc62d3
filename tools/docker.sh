#!/usr/bin/env bash
# docker.sh start|stop|answers: run a Docker of our own where none answers, end it
# again, or say by the exit code whether one answers. Its data, log and process id
# are in the folder BERTH_DOCKER; without one, start makes a folder and names it.
# A Docker that was running before is never ended.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/lib.sh

limit=60 # seconds until Docker must answer, or be gone

answers() { command -v docker >/dev/null && timeout 10 docker version >/dev/null 2>&1; }

start() {
  if answers; then return; fi
  [ -z "${DOCKER_HOST:-}" ] || die "the Docker at DOCKER_HOST=$DOCKER_HOST does not answer"
  command -v dockerd >/dev/null || die "no dockerd to start; run tools/setup.sh docker"
  [ "$(id -u)" -eq 0 ] || die "Docker does not answer, and only root can start it; start it yourself"
  local dir=${BERTH_DOCKER:-}
  [ -n "$dir" ] || dir=$(mktemp -d -t berth-docker.XXXXXX)
  say "starting dockerd; end it with: BERTH_DOCKER=$dir tools/docker.sh stop"
  # A session of its own: what ends make with a signal must leave it to stop.
  setsid dockerd --data-root "$dir/data" --exec-root "$dir/exec" --pidfile "$dir/pid" \
    </dev/null >"$dir/log" 2>&1 &
  local process=$! begin=$SECONDS
  until answers; do
    if ! kill -0 "$process" 2>/dev/null; then
      die "dockerd ended before it answered:"$'\n'"$(tail -n 15 "$dir/log")"
    fi
    if [ $((SECONDS - begin)) -ge $limit ]; then
      kill "$process" 2>/dev/null || true
      die "dockerd does not answer after $limit s:"$'\n'"$(tail -n 15 "$dir/log")"
    fi
    sleep 0.2
  done
}

stop() {
  local dir=${BERTH_DOCKER:?is not set: the folder that start has named}
  if [ -s "$dir/pid" ]; then
    local process begin=$SECONDS
    process=$(<"$dir/pid")
    # The id may be somebody else's by now, if dockerd has ended by itself.
    if [ "$(cat "/proc/$process/comm" 2>/dev/null)" = dockerd ]; then
      say "ending dockerd"
      kill "$process"
      while kill -0 "$process" 2>/dev/null; do
        [ $((SECONDS - begin)) -lt $limit ] || die "dockerd does not end; its process is $process"
        sleep 0.1
      done
    fi
  fi
  rm -rf "$dir"
}

case "${1:-}" in
  start | stop | answers) "$1" ;;
  *) die "want start, stop or answers" ;;
esac
