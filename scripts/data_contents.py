"""Write the digests and facts of the benchmark sets: ``python scripts/data_contents.py FOLDER``.

The folder holds the benchmark files that are right; kernelweave/datasets/contents.json is written anew.
"""

import json
import sys
from pathlib import Path

import numpy as np

from kernelweave.datasets import sources
from kernelweave.datasets.digests import array_digest, content_digest

FACTS = ("view_names", "classes", "feature_names", "image_shape", "n", "m")


def described(file):
    with np.load(file, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in sorted(stored.files)}
    facts = {name: array for name, array in arrays.items() if name in FACTS or name.endswith("_shape")}
    return {
        "sha256": content_digest(arrays),
        "facts": {name: array.tolist() for name, array in facts.items()},
        "arrays": {
            name: {"shape": list(array.shape), "sha256": array_digest(array)}
            for name, array in arrays.items()
            if name not in facts
        },
    }


def main(folder):
    contents = {name: described(Path(folder, f"{entry[0]}.npz")) for name, entry in sorted(sources.ENTRIES.items())}
    target = Path(sources.__file__).with_name("contents.json")
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(each, ensure_ascii=False)}" for name, each in contents.items())
    target.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
