#!/usr/bin/env bash
# A plugin's tests without a key and without a network:
#   ci.sh SIDECAR PLUGIN [ARGUMENT...]     such as   ci.sh kode-sidecar python3 plugin.py
# A scripted model answers, the sidecar records and adds what a right client ignores, and the grader
# judges the recording. PLUGIN gets the project and the sidecar's command line as last arguments.
set -euo pipefail
sidecar=$1
shift
work=$(mktemp -d)
mkdir "$work/project"
"$sidecar" model everything --folder "$work/project" > "$work/environment" &
model=$!
trap 'kill $model; rm -rf "$work"' EXIT
until grep -q KIMI_API_KEY "$work/environment"; do sleep 0.1; done
while IFS='=' read -r name value; do
  [[ $name == \#* ]] || export "$name=$value"
done < "$work/environment"
export KODE_HOME="$work/home"
"$@" "$work/project" "$sidecar" serve --record "$work/talk.jsonl" --grease
"$sidecar" grade "$work/talk.jsonl"
