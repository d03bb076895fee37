"""Printed figures that cannot be run, by table, counted as those of other tables are: a mean and a deviation are two.

Times are not counted anywhere: they are those of another machine.
"""

#: Why they cannot be run, in the words of ``notes/coverage.md``, and how many they are.
UNAVAILABLE = {
    "MSc table 5.2": (27, "slices of the BrainWeb MRI"),
    "MVKSC table 7": (18, "29,953 Reuters documents in five languages"),
    "PhD table 2.2": (60, "visual words of COIL-20"),
    "PhD table 2.3": (60, "visual words of COIL-20"),
    "PhD table 2.4": (60, "visual words of COIL-20"),
    "PhD table 2.11": (3, "one share over nine sets, three of them visual words of COIL-20"),
    "PhD table 3.5": (22, "WebKB, 2,076 pages"),
    "PhD table 3.6": (2, "WebKB, 2,076 pages"),
    "PhD table 3.7": (36, "Internet advertisements"),
    "PhD table 3.8": (36, "Internet advertisements"),
    "PhD table 3.9": (12, "Internet advertisements"),
    "PhD table 5.1": (12, "visual words of COIL-20, Corel images"),
    "PhD table 5.3": (100, "visual words of COIL-20, Corel images"),
}
