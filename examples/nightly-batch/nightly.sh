#!/bin/sh
# nightly.sh REPOSITORIES BATCHES [SCHEDULER]: the batch of today, begun or resumed.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
out=$2/$(date +%F)
set -- "$1" "$out" ${3:+--scheduler "$3"}
repositories=$1
shift 2
exec kode-sidecar batch --config "$here/job.yaml" --prompt-file "$here/task.md" \
    --tasks "$repositories" --out "$out" --jobs 8 --budget 50CNY --max-failures 20 "$@"
