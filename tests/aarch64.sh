#!/usr/bin/env bash
# Builds the C library for aarch64 and runs the exercise of its pool and workspace in an emulator;
# `make aarch64` calls it. Where the tools are missing it says so and ends well.
set -euo pipefail
cd "$(dirname "$0")/.."

compiler=aarch64-linux-gnu-gcc
for tool in cmake $compiler qemu-aarch64; do
    if ! command -v $tool >/dev/null; then
        echo "aarch64: skipped, no $tool here (Debian: apt-get install cmake gcc-aarch64-linux-gnu qemu-user)"
        exit 0
    fi
done

build=build/aarch64
cmake -S . -B $build -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
    -DCMAKE_C_COMPILER=$compiler -DCMAKE_COMPILE_WARNING_AS_ERROR=ON >/dev/null
cmake --build $build

csrc=src/anharmonic/ops/csrc
$compiler -std=gnu11 -O2 -Wall -Wextra -Werror -I$csrc \
    tests/ops/exercise.c $csrc/pool.c $csrc/workspace.c -pthread -lm -o $build/exercise
qemu-aarch64 -L /usr/aarch64-linux-gnu $build/exercise 3 no-forks
echo "aarch64: the library builds and the exercise ended well"
