#!/bin/sh
# The figures of learning on one GPU. Rows end in OUT/*.jsonl and OUT/paper/NAME.
#
#     sh benchmarks/gpu.sh speed OUT      training speed
#     sh benchmarks/gpu.sh alone OUT      DCL+ of the main table, 500 tasks, timed with nothing else on the card
#     sh benchmarks/gpu.sh instance-stats OUT   instance statistics in normalisation, with the net of the run above
#
# Many runs that share a card: benchmarks/side_by_side.py. For a copy without git, write a build stamp first, in
# a clean checkout: python -m everlearn.core.stamp
set -e
out=${2:?give a step (speed, alone, instance-stats) and a folder to write to}
mkdir -p "$out/logs"

case $1 in
speed)
    python3 benchmarks/train.py --out "$out"
    ;;
alone)
    python3 -m everlearn run dcl-plus --tasks 3 --preset paper --device cuda \
        --out "$out/warm-up" > "$out/logs/warm-up.log" 2>&1  # kernels are compiled once on a machine
    rm -r "$out/warm-up"
    python3 benchmarks/wall_clock.py --out "$out" -- python3 -m everlearn reproduce overview \
        --only dcl-plus-seed10 --scale paper --device cuda --out "$out" > "$out/logs/dcl-plus-seed10.log" 2>&1
    ;;
instance-stats)
    python3 benchmarks/instance_stats.py "$out/paper/dcl-plus-seed10" --out "$out"
    ;;
*)
    echo "unknown step $1; known: speed, alone, instance-stats" >&2
    exit 2
    ;;
esac
