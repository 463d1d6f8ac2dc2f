"""Wheels of all platforms from one Linux machine, by Zig as the cross compiler.

    python tools/wheels.py [--out dist] [--targets manylinux_2_17_x86_64,win_amd64]

Needs cmake and a virtual environment with ziglang, wheel and scikit-build-core (PyPI). Each wheel
is the package as it is with a C library compiled for its platform: the library knows nothing of
Python, so there is one wheel for all versions. The release builds its wheels on machines of their
own (.github/workflows/wheels.yml); here one sees before that what compiles.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
# The tag of a wheel, Zig's target, CMake's system and processor.
TARGETS = {
    "manylinux_2_17_x86_64": ("x86_64-linux-gnu.2.17", "Linux", "x86_64"),
    "manylinux_2_17_aarch64": ("aarch64-linux-gnu.2.17", "Linux", "aarch64"),
    "musllinux_1_2_x86_64": ("x86_64-linux-musl", "Linux", "x86_64"),
    "musllinux_1_2_aarch64": ("aarch64-linux-musl", "Linux", "aarch64"),
    "macosx_11_0_arm64": ("aarch64-macos.11.0", "Darwin", "arm64"),
    "win_amd64": ("x86_64-windows-gnu", "Windows", "AMD64"),
}
LIBRARY = "libanharmonic.so"


def run(*words: object, **options: object) -> None:
    """Runs a command."""
    subprocess.run([str(word) for word in words], check=True, **options)  # type: ignore[call-overload]


def library(tag: str, folder: Path) -> Path:
    """Compiles the C library for one platform."""
    target, system, processor = TARGETS[tag]
    compiler = folder / "cc"
    zig = f'exec "{sys.executable}" -m ziglang cc -target {target} "$@"'
    # Zig knows no bundles, which CMake makes of modules on macOS; ctypes opens libraries, too.
    compiler.write_text(
        '#!/bin/sh\nfor word; do\n    shift\n    [ "$word" = -bundle ] && word=-dynamiclib\n'
        f'    set -- "$@" "$word"\ndone\n{zig}\n'
    )
    compiler.chmod(0o755)
    built, more = folder / "build", []
    if system == "Darwin":
        more = ["-DCMAKE_OSX_SYSROOT=/", "-DCMAKE_OSX_ARCHITECTURES="]
    if system == "Windows":  # Zig compiles what is linked, and CMake names a dozen libraries
        more = ["-DCMAKE_C_STANDARD_LIBRARIES="]
    run(
        "cmake", "-S", ROOT, "-B", built, f"-DCMAKE_SYSTEM_NAME={system}",
        f"-DCMAKE_SYSTEM_PROCESSOR={processor}", f"-DCMAKE_C_COMPILER={compiler}",
        # Zig checks for undefined behaviour where nobody says otherwise.
        "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_C_FLAGS=-fno-sanitize=undefined", *more,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    run("cmake", "--build", built, "--parallel", "2", stdout=subprocess.DEVNULL)
    (found,) = built.glob(LIBRARY)
    return found


def package(folder: Path) -> Path:
    """The package without a library, unpacked."""
    run(
        sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-C", "wheel.cmake=false",
        "-w", folder, ROOT,
    )  # fmt: skip
    (wheel,) = folder.glob("*.whl")
    run(sys.executable, "-m", "wheel", "unpack", "-d", folder / "package", wheel)
    (unpacked,) = (folder / "package").iterdir()
    return unpacked


def main() -> None:
    """Runs the script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("dist"))
    parser.add_argument("--targets", default=",".join(TARGETS))
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    failed = []
    with tempfile.TemporaryDirectory() as temporary:
        unpacked = package(Path(temporary))
        for tag in chosen.targets.split(","):
            folder = Path(temporary) / tag
            folder.mkdir()
            try:
                made = library(tag, folder)
            except subprocess.CalledProcessError as error:
                print(f"{tag}: {error}", file=sys.stderr)
                failed.append(tag)
                continue
            shutil.copy(made, unpacked / "anharmonic" / "ops" / LIBRARY)
            (info,) = unpacked.glob("*.dist-info/WHEEL")
            lines = [
                f"Tag: py3-none-{tag}"
                if line.startswith("Tag:")
                else "Root-Is-Purelib: false"
                if line.startswith("Root-Is-Purelib")
                else line
                for line in info.read_text().splitlines()
            ]
            info.write_text("\n".join(lines) + "\n")
            run(sys.executable, "-m", "wheel", "pack", "-d", chosen.out, unpacked)
    if failed:
        sys.exit(f"not built: {', '.join(failed)}")


if __name__ == "__main__":
    main()
