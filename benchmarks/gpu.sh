#!/bin/sh
# The figures of learning on one GPU. Rows end in OUT/*.jsonl and OUT/runs/NAME.
#
#     sh benchmarks/gpu.sh speed OUT      training speed
#     sh benchmarks/gpu.sh alone OUT      the run that is timed, with nothing else on the card
#     sh benchmarks/gpu.sh seeds OUT      three seeds side by side
#     sh benchmarks/gpu.sh others OUT     jitter, 128 pixels and plain dcl, side by side
#     sh benchmarks/gpu.sh methods OUT lwf:0 er-5k:1 ...    other methods, by name and seed
#     sh benchmarks/gpu.sh own OUT        own moments in normalisation, with the net of seed 2
#     sh benchmarks/gpu.sh million OUT    one shot among a million classes, with the net of seed 0
#
# Several processes share a card best through its sharing service (MPS), which is started for them. A run
# that was stopped goes on when it is asked for again.
set -e
out=${2:?give a step (speed, alone, seeds, others, methods, own, million) and a folder to write to}
mkdir -p "$out/runs"

learn() {  # NAME METHOD OPTIONS...
    name=$1
    shift
    if [ -e "$out/runs/$name" ]; then
        python3 -m everlearn resume "$out/runs/$name"
    else
        python3 -m everlearn run "$@" --preset paper --device cuda --out "$out/runs/$name"
    fi > "$out/$name.log" 2>&1
}

share() {
    export CUDA_MPS_PIPE_DIRECTORY=/tmp/everlearn-mps CUDA_MPS_LOG_DIRECTORY=/tmp/everlearn-mps-log
    mkdir -p $CUDA_MPS_PIPE_DIRECTORY $CUDA_MPS_LOG_DIRECTORY
    nvidia-cuda-mps-control -d || unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
}

finish() {  # IDS OF PROCESSES...
    for id in "$@"; do wait "$id"; done
    [ -z "$CUDA_MPS_PIPE_DIRECTORY" ] || echo quit | nvidia-cuda-mps-control
}

options() {  # NAME, as in results/paper
    case $1 in
    er-*k) echo "er --memory ${1#er-}" | sed 's/k$/000/' ;;
    der++-5k) echo "der++ --memory 5000" ;;
    der++-5k-late) echo "der++ --memory 5000 --late" ;;
    contrastive) echo "contrastive --tasks 200" ;;
    l2p-lite) echo "l2p-lite --tasks 100 --weights $out/vit-lite.npz" ;;
    joint) echo "joint --joint.every 500 --every 500" ;;
    *) echo "$1" ;;
    esac
}

case $1 in
methods)  # four at a time; one that was stopped goes on
    shift 2
    share
    printf '%s\n' "$@" | xargs -P "${WORKERS:-4}" -I JOB sh "$0" method "$out" JOB
    finish
    ;;
method)
    name=${3%:*} seed=${3#*:}
    learn "$name-seed$seed" $(options "$name") --seed "$seed" --save-seconds 60
    ;;
speed)
    python3 benchmarks/train.py --out "$out"
    ;;
alone)
    learn warm-up dcl-plus --tasks 3  # kernels are compiled once on a machine
    rm -r "$out/runs/warm-up"
    python3 benchmarks/wall.py --out "$out" -- python3 -m everlearn run dcl-plus --seed 0 \
        --preset paper --device cuda --out "$out/runs/dcl-plus-seed0" > "$out/dcl-plus-seed0.log" 2>&1
    ;;
seeds)
    share
    learn dcl-plus-seed0 dcl-plus --seed 0 & ids=$!
    learn dcl-plus-seed1 dcl-plus --seed 1 & ids="$ids $!"
    learn dcl-plus-seed2 dcl-plus --seed 2 & ids="$ids $!"
    finish $ids
    ;;
others)
    share
    learn dcl-plus-128 dcl-plus --seed 0 --size 128 --every 50 & ids=$!
    learn dcl-plus-jitter dcl-plus --seed 0 --jitter 0.25 & ids="$ids $!"
    learn dcl-seed0 dcl --seed 0 & ids="$ids $!"
    finish $ids
    ;;
own)
    python3 benchmarks/own.py "$out/runs/dcl-plus-seed2" --out "$out"
    ;;
million)
    python3 benchmarks/million.py "$out/runs/dcl-plus-seed0" --out "$out"
    ;;
*)
    echo "unknown step $1; known: speed, alone, seeds, others, methods, own, million" >&2
    exit 2
    ;;
esac
