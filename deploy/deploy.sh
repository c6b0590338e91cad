#!/usr/bin/env bash
# Checks that this machine and its settings are fit, then builds, migrates, starts and waits until all is healthy.
#
#   deploy/deploy.sh           check and deploy; safe to repeat, also for an upgrade
#   deploy/deploy.sh --check   only check: every finding is one sentence, and exit 1 when one is a problem
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly OLDEST_COMPOSE=2.30.0 # the first that reads keys.env as it stands
readonly DISK_GB=10 MEMORY_GB=6 WAIT_SECONDS=300 PASSWORD_LENGTH=24
problems=0

problem() {
  printf 'problem: %s\n' "$*"
  problems=$((problems + 1))
}
note() { printf 'note: %s\n' "$*"; }
ok() { printf 'ok: %s\n' "$*"; }

# setting NAME: its value from the environment, else from .env, else empty. What compose itself would take.
setting() {
  if [[ -n "${!1+set}" ]]; then
    printf '%s' "${!1}"
  elif [[ -r .env ]]; then
    sed -n "s/^[[:space:]]*$1=//p" .env | tail -n 1 | sed -e 's/[[:space:]]*$//' -e "s/^'\(.*\)'\$/\1/" -e 's/^"\(.*\)"$/\1/'
  fi
}

at_least() { # at_least WANTED GIVEN, both like 2.30.0
  [[ "$(printf '%s\n%s\n' "$1" "$2" | sort -t. -k1,1n -k2,2n -k3,3n | head -n 1)" == "$1" ]]
}

check_docker() {
  local version
  if ! command -v docker >/dev/null; then
    problem 'docker is not installed; see https://docs.docker.com/engine/install/.'
    return
  fi
  if ! docker info >/dev/null 2>&1; then
    problem 'the Docker engine does not answer; start it, or add this user to the group docker.'
  fi
  if ! version="$(docker compose version --short 2>/dev/null)"; then
    problem 'docker has no compose command; install the package docker-compose-plugin.'
    return
  fi
  version="${version#v}" version="${version%%[-+]*}"
  if at_least "$OLDEST_COMPOSE" "$version"; then
    ok "Docker Compose $version"
  else
    problem "Docker Compose is $version and must be $OLDEST_COMPOSE or newer."
  fi
}

# private FILE: nobody but its owner may read it. `ls` because stat differs between systems.
private() { [[ "$(ls -l "$1")" == ?r[w-]?------* ]]; }
public() { [[ "$(ls -l "$1")" == ???????r* ]]; }

check_files() {
  local file
  [[ -e .env ]] || note 'there is no .env; copy .env.example to .env and fill it in, unless the environment holds it all.'
  [[ -e channels.toml ]] || problem 'channels.toml is missing; copy examples/channels.toml to it and name your channels.'
  [[ -e keys.env ]] || problem 'keys.env is missing; copy deploy/keys.env.example to it and fill in the keys of your channels.'
  for file in .env keys.env; do
    if [[ -e $file ]] && ! private "$file"; then
      problem "$file can be read by others; run: chmod 600 $file"
    fi
  done
  for file in channels.toml deploy/postgres/roles.sql deploy/temporal/* deploy/collector.yaml deploy/jaeger.yaml; do
    if [[ -e $file ]] && ! public "$file"; then
      problem "$file cannot be read by the users of the containers; run: chmod a+r $file"
    fi
  done
}

# The variables without which docker-compose.yml does not start, and its own sentences about them.
check_settings() {
  local line name value seen=' ' url
  while IFS= read -r line; do
    name="${line%%:\?*}"
    value="$(setting "$name")"
    if [[ -z $value ]]; then
      problem "${line#*:\?} (It belongs into .env.)"
    elif [[ $name == *PASSWORD ]]; then
      if [[ ! $value =~ ^[A-Za-z0-9_-]{$PASSWORD_LENGTH,}$ ]]; then
        problem "$name is too weak: it must have $PASSWORD_LENGTH or more letters, digits, - and _; try: openssl rand -hex 24"
      elif [[ $seen == *" $value "* ]]; then
        problem "$name is the same as another password; each role needs its own."
      fi
      seen+="$value "
    fi
  done < <(grep -oE '\$\{[A-Z_]+:\?[^}]*' docker-compose.yml | sed 's/^\${//' | sort -u)
  url="$(setting CITELOOP_CALLBACK_BASE_URL)"
  case "$url" in
    '' | https://?*) ;;
    http://?*) note "CITELOOP_CALLBACK_BASE_URL is $url: without TLS anybody on the way can read the callbacks." ;;
    *) problem "CITELOOP_CALLBACK_BASE_URL is $url and must be an address that begins with https://." ;;
  esac
}

running() { [[ -n "$(docker compose ps --quiet --status running "$1" 2>/dev/null)" ]]; }

# check_port SERVICE VARIABLE DEFAULT: free, or ours already.
check_port() {
  local port
  port="$(setting "$2")" port="${port:-$3}"
  if [[ ! $port =~ ^[0-9]{1,5}$ ]] || ((10#$port < 1 || 10#$port > 65535)); then
    problem "$2 is $port and must be a port between 1 and 65535."
  elif (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && ! running "$1"; then
    problem "port $port, wanted for $1, is taken by another program; choose another in $2."
  fi
}

check_room() {
  local root free memory
  root="$(docker info --format '{{.DockerRootDir}}' 2>/dev/null || true)"
  [[ -d $root ]] || root=.
  free="$(df -Pk "$root" | awk 'NR == 2 { print int($4 / 1048576) }')"
  if ((free < DISK_GB)); then
    problem "$free GB are free on the disk of $root; $DISK_GB GB are needed for the images and a first month of data."
  fi
  if [[ -r /proc/meminfo ]]; then
    memory="$(awk '/^MemTotal/ { print int($2 / 1048576 + 0.5) }' /proc/meminfo)"
    if ((memory < MEMORY_GB)); then
      note "this machine has $memory GB of memory; the limits in .env.example are for $MEMORY_GB GB or more."
    fi
  fi
}

# By the checkout's own Python where there is one, else by the image where it is built.
check_channels() {
  local status=0 told files=(channels.toml)
  [[ -r channels.toml ]] || return 0
  [[ ! -r keys.env ]] || files+=(keys.env)
  if [[ -x .venv/bin/python ]]; then
    told="$(.venv/bin/python deploy/channels.py "${files[@]}" 2>&1)" || status=$?
  elif [[ -n "$(docker compose images --quiet worker 2>/dev/null)" || -n ${built:-} ]]; then
    told="$(docker compose run --rm --no-deps --entrypoint python cli /opt/citeloop/channels.py /etc/citeloop/channels.toml 2>&1)" || status=$?
  else
    note 'channels.toml is checked as soon as the image is built.'
    return 0
  fi
  if ((status == 0)); then
    printf '%s\n' "$told"
  else
    problem "channels.toml: ${told#problem: }"
  fi
}

verdict() {
  if ((problems > 0)); then
    printf '%s to solve first; nothing was started.\n' "$([[ $problems -eq 1 ]] && echo 'One problem' || echo "$problems problems")"
    exit 1
  fi
}

check() {
  check_docker
  check_files
  check_settings
  check_port api CITELOOP_API_PORT 8080
  check_port temporal-ui TEMPORAL_UI_PORT 8233
  check_port jaeger TRACES_PORT 16686
  check_room
  check_channels
  verdict
}

deploy() {
  local bind port
  docker compose config --quiet
  docker compose pull --ignore-buildable --quiet
  if [[ -n "$(setting CITELOOP_IMAGE)" ]]; then
    docker compose pull --quiet worker
    docker compose build --quiet collector
  else
    docker compose build --quiet
  fi
  built=yes
  [[ -x .venv/bin/python ]] || check_channels
  verdict
  echo 'migrating'
  docker compose run --rm migrate
  echo "starting; this may take up to $((WAIT_SECONDS / 60)) minutes"
  if ! docker compose up --detach --no-build --remove-orphans --wait --wait-timeout "$WAIT_SECONDS"; then
    docker compose ps --all
    echo 'problem: not everything became healthy; docker compose logs SERVICE tells why.' >&2
    exit 1
  fi
  docker compose ps
  bind="$(setting CITELOOP_API_BIND)" port="$(setting CITELOOP_API_PORT)"
  cat <<END

API           http://${bind:-127.0.0.1}:${port:-8080}
callbacks to  $(setting CITELOOP_CALLBACK_BASE_URL)
Temporal UI   http://127.0.0.1:$(port_of TEMPORAL_UI_PORT 8233)
traces        http://127.0.0.1:$(port_of TRACES_PORT 16686)
command line  docker compose run --rm cli status
END
}

port_of() {
  local port
  port="$(setting "$1")"
  printf '%s' "${port:-$2}"
}

case "${1:-}" in
  '')
    check
    deploy
    ;;
  --check)
    check
    echo 'All is ready: deploy/deploy.sh starts it.'
    ;;
  -h | --help) sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" ;;
  *)
    echo "deploy.sh: $1 is no option; see deploy/deploy.sh --help" >&2
    exit 2
    ;;
esac
