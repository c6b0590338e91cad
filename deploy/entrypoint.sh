#!/bin/sh
# What a container does: worker | api | migrate, each with further options, or any command of the citeloop CLI.
set -eu

role="${1:-worker}"
[ "$#" -eq 0 ] || shift
case "$role" in
  worker) exec python -m worker "$@" ;;
  api) exec python -m starter.api --host 0.0.0.0 --port 8080 "$@" ;;
  migrate) exec citeloop db upgrade "$@" ;;
  *) exec citeloop "$role" "$@" ;;
esac
