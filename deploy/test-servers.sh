#!/usr/bin/env bash
# Installs the real servers that the tests run against: Debian's prometheus and
# prometheus-alertmanager. They are started by the tests alone, on loopback.
set -euo pipefail

missing=()
command -v prometheus >/dev/null && command -v promtool >/dev/null || missing+=(prometheus)
command -v prometheus-alertmanager >/dev/null || missing+=(prometheus-alertmanager)
[ ${#missing[@]} -eq 0 ] && exit 0

say() { echo "tests: ${missing[*]} not installed; $1" >&2; }
if ! command -v apt-get >/dev/null; then
  say 'install Prometheus and Alertmanager with your package manager. Tests that need them are skipped.'
  [ -z "${CI:-}" ] || exit 1
  exit 0
fi
if [ "$(id -u)" -ne 0 ]; then
  say "run: sudo apt-get install -y --no-install-recommends ${missing[*]}. Tests that need them are skipped."
  [ -z "${CI:-}" ] || exit 1
  exit 0
fi
say 'installing them'
# Debian starts services on install; the tests start their own.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod +x "$policy"
  trap 'rm -f "$policy"' EXIT
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
