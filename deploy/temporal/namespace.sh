#!/bin/sh
# The namespace, how long it keeps closed workflows, and our search attributes; safe to repeat.
# The temporal command reads TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE by itself.
set -eu

retention=720h
attributes="CiteLoopTenant=Keyword CiteLoopCampaign=Keyword CiteLoopStage=Keyword CiteLoopState=Keyword
CiteLoopChannel=Keyword CiteLoopPriority=Int"

# The server's own caches learn of a new namespace only after seconds, so that each step may have to wait.
patiently() {
  tries=0
  until said="$("$@" 2>&1)"; do
    tries=$((tries + 1))
    if [ "$tries" -ge 60 ]; then
      echo "after two minutes still: $* says $said" >&2
      return 1
    fi
    sleep 2
  done
}

patiently temporal operator cluster health
new=
if ! temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" >/dev/null 2>&1; then
  patiently temporal operator namespace create --namespace "$TEMPORAL_NAMESPACE" --retention "$retention"
  new=yes
fi
patiently temporal operator namespace update --namespace "$TEMPORAL_NAMESPACE" --retention "$retention"

patiently temporal operator search-attribute list
known="$said"
for attribute in $attributes; do
  name="${attribute%=*}"
  if ! echo "$known" | grep -qw "$name"; then
    patiently temporal operator search-attribute create --name "$name" --type "${attribute#*=}"
    new=yes
  fi
done

# Nobody should start a workflow before the caches know the attributes.
[ -z "$new" ] || sleep "${SETTLE_SECONDS:-10}"
echo "namespace $TEMPORAL_NAMESPACE is ready"
