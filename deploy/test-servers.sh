#!/usr/bin/env bash
# Installs the real servers that the tests run against: Debian's prometheus,
# prometheus-alertmanager and postgresql. They are started by the tests alone, on
# loopback. With strace the tests count syncs and make disks fail.
set -euo pipefail

missing=()
command -v prometheus >/dev/null && command -v promtool >/dev/null || missing+=(prometheus)
command -v prometheus-alertmanager >/dev/null || missing+=(prometheus-alertmanager)
# Debian keeps initdb out of PATH.
command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || missing+=(postgresql)
command -v strace >/dev/null || missing+=(strace)
[ ${#missing[@]} -eq 0 ] && exit 0

say() { echo "tests: ${missing[*]} not installed; $1" >&2; }
if ! command -v apt-get >/dev/null; then
  say 'install Prometheus, Alertmanager, PostgreSQL and strace with your package manager. Tests that need them are skipped.'
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
# Nor does anybody need the database that it makes on install.
cluster=/etc/postgresql-common/createcluster.conf
if [[ " ${missing[*]} " == *' postgresql '* ]] && [ ! -e "$cluster" ]; then
  mkdir -p "${cluster%/*}"
  echo 'create_main_cluster = false' >"$cluster"
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
  -o Dpkg::Options::=--force-confold "${missing[@]}" >/dev/null
