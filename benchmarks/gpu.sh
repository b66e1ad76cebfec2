#!/bin/sh
# The figures of learning on one GPU. Rows end in OUT/*.jsonl and OUT/runs/NAME.
#
#     sh benchmarks/gpu.sh speed OUT      training speed
#     sh benchmarks/gpu.sh alone OUT      the run that is timed, with nothing else on the card
#     sh benchmarks/gpu.sh together OUT   more runs side by side, and a million classes
#
# Several processes share a card best through its sharing service (MPS), which is started here.
set -e
out=${2:?give a step (speed, alone, together) and a folder to write to}
mkdir -p "$out/runs"

learn() {  # NAME METHOD OPTIONS...
    name=$1
    shift
    python3 -m everlearn run "$@" --preset paper --device cuda --out "$out/runs/$name" \
        > "$out/$name.log" 2>&1
}

share() {
    export CUDA_MPS_PIPE_DIRECTORY=/tmp/everlearn-mps CUDA_MPS_LOG_DIRECTORY=/tmp/everlearn-mps-log
    mkdir -p $CUDA_MPS_PIPE_DIRECTORY $CUDA_MPS_LOG_DIRECTORY
    nvidia-cuda-mps-control -d || unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
}

case $1 in
speed)
    python3 benchmarks/train.py --out "$out"
    ;;
alone)
    learn warm-up dcl-plus --tasks 3  # kernels are compiled once on a machine
    rm -r "$out/runs/warm-up"
    began=$(date +%s.%N)
    learn dcl-plus-seed0 dcl-plus --seed 0
    date +%s.%N | awk -v began="$began" -v commit="$EVERLEARN_COMMIT" \
        '{ printf "{\"what\": \"wall time of a run, start to end\", \"run\": \"dcl-plus-seed0\", \"seconds\": %.1f, \"commit\": \"%s\"}\n", $1 - began, commit }' \
        > "$out/wall.jsonl"
    ;;
together)
    share
    learn dcl-plus-seed1 dcl-plus --seed 1 &
    learn dcl-plus-seed2 dcl-plus --seed 2 &
    learn dcl-plus-jitter dcl-plus --seed 0 --jitter 0.25 &
    learn dcl-plus-128 dcl-plus --seed 0 --size 128 --every 50 &
    python3 benchmarks/million.py "$out/runs/dcl-plus-seed0" --out "$out" > "$out/million.log" 2>&1 &
    wait
    ;;
*)
    echo "unknown step $1; known: speed, alone, together" >&2
    exit 2
    ;;
esac
