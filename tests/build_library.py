"""The C library for one instruction set, without CMake: seconds instead of minutes."""

import os
import subprocess
from pathlib import Path

ENGINE = "-ffp-contract=fast -fno-math-errno -fno-trapping-math"


def build(root: Path, library: Path, flags: str = "-O1", compiler: str | None = None) -> None:
    """Builds the baseline engines of the sources under `root` into `library`.

    Args:
        root: The checkout, or a copy of it.
        library: Where the library is written.
        flags: What the compiler is given beside what the code needs.
        compiler: The C compiler; by default CC, else cc.
    """
    sources = root / "src" / "anharmonic" / "ops" / "csrc"
    compiler = compiler or os.environ.get("CC", "cc")
    library.parent.mkdir(parents=True, exist_ok=True)
    common = [compiler, "-std=gnu11", "-fPIC", "-fvisibility=hidden", *flags.split(), "-Wno-psabi"]
    made, running = [], []
    for real, size in (("float", 4), ("double", 8)):
        words = [*ENGINE.split(), f"-DAN_REAL={real}", f"-DAN_REAL_BYTES={size}"]
        words += [f"-DAN_ENGINE=an_engine_baseline_{real}"]
        made.append(library.with_name(f"{library.stem}-{real}.o"))
        command = [*common, *words, "-c", str(sources / "engine.c"), "-o", str(made[-1])]
        running.append(subprocess.Popen(command))
    if any(process.wait() for process in running):
        raise RuntimeError("the engines do not compile")
    rest = [str(sources / f"{name}.c") for name in ("cpu", "library", "pool", "workspace")]
    command = [*common, *rest, *map(str, made), "-shared", "-pthread", "-lm", "-o", str(library)]
    subprocess.run(command, check=True)
    for path in made:
        path.unlink()
