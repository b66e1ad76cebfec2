#!/bin/sh
# The figures of learning on one GPU. Rows end in OUT/*.jsonl, OUT/runs/NAME and OUT/paper.
#
#     sh benchmarks/gpu.sh speed OUT      training speed
#     sh benchmarks/gpu.sh alone OUT      the run that is timed, with nothing else on the card
#     sh benchmarks/gpu.sh instance-stats OUT   instance statistics in normalisation, with the net of the run above
#     sh benchmarks/gpu.sh experiments OUT NAME...    runs and measurements of `everlearn reproduce`
#
# Several processes share a card best through its sharing service (MPS), which is started for them. A run
# that was stopped goes on when it is asked for again. For a copy without git, write a build stamp first, in a
# clean checkout: python -m everlearn.core.stamp
set -e
out=${2:?give a step (speed, alone, instance-stats, experiments) and a folder to write to}
mkdir -p "$out/runs" "$out/logs"

reproduce() {  # NAME
    python3 -m everlearn reproduce all --scale paper --device cuda --out "$out" --only "$1" \
        > "$out/logs/$1.log" 2>&1
}

share() {
    export CUDA_MPS_PIPE_DIRECTORY=/tmp/everlearn-mps CUDA_MPS_LOG_DIRECTORY=/tmp/everlearn-mps-log
    mkdir -p $CUDA_MPS_PIPE_DIRECTORY $CUDA_MPS_LOG_DIRECTORY
    nvidia-cuda-mps-control -d || unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
}

case $1 in
experiments)  # WORKERS at a time
    shift 2
    share
    printf '%s\n' "$@" | xargs -P "${WORKERS:-4}" -I NAME sh "$0" experiment "$out" NAME || failed=1
    [ -z "$CUDA_MPS_PIPE_DIRECTORY" ] || echo quit | nvidia-cuda-mps-control
    exit "${failed:-0}"
    ;;
experiment)
    reproduce "$3"
    ;;
speed)
    python3 benchmarks/train.py --out "$out"
    ;;
alone)
    python3 -m everlearn run dcl-plus --tasks 3 --preset paper --device cuda \
        --out "$out/runs/warm-up" > "$out/logs/warm-up.log" 2>&1  # kernels are compiled once on a machine
    rm -r "$out/runs/warm-up"
    python3 benchmarks/wall_clock.py --out "$out" -- python3 -m everlearn run dcl-plus --seed 0 \
        --preset paper --device cuda --out "$out/runs/dcl-plus-seed0" > "$out/logs/dcl-plus-seed0.log" 2>&1
    ;;
instance-stats)
    python3 benchmarks/instance_stats.py "$out/runs/dcl-plus-seed0" --out "$out"
    ;;
*)
    echo "unknown step $1; known: speed, alone, instance-stats, experiments" >&2
    exit 2
    ;;
esac
