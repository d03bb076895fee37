"""Colours and shapes of clusters."""

from itertools import combinations

import numpy as np
import pytest

from kernelweave.evaluation.palette import DARK, LIGHT, MARKERS, PATHS, colour_index, shape_index

# From linear sRGB to the cones of Oklab, and on to lightness and two opponent colours (Ottosson 2020).
CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
OPPONENTS = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)
# Linear sRGB as seen without red, green or blue receptors (Machado, Oliveira and Fernandes 2009, severity 1).
WITHOUT = {
    "all receptors": np.eye(3),
    "red": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "green": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "blue": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


def linear(colours):
    values = np.array([[int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)] for colour in colours])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def oklab(rgb):
    return np.cbrt(rgb @ CONES.T) @ OPPONENTS.T


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("seen", WITHOUT)
def test_colours_differ_and_those_of_one_shape_differ_for_everybody(colours, seen):
    places = oklab(np.clip(linear(colours) @ WITHOUT[seen].T, 0.0, 1.0))
    gaps = {(a, b): np.linalg.norm(places[a] - places[b]) for a, b in combinations(range(len(colours)), 2)}
    assert len(gaps) == 190
    if seen == "all receptors":
        assert min(gaps.values()) > 0.08
    assert min(gap for (a, b), gap in gaps.items() if shape_index(a) == shape_index(b)) > 0.09


@pytest.mark.parametrize(("colours", "ground", "least"), [(LIGHT, "#ffffff", 1.9), (DARK, "#1a1f26", 3.5)])
def test_colours_stand_out_from_their_ground(colours, ground, least):
    luminance = linear([*colours, ground]) @ [0.2126, 0.7152, 0.0722] + 0.05
    assert np.maximum(luminance[:-1] / luminance[-1], luminance[-1] / luminance[:-1]).min() > least


def test_a_pair_of_colour_and_shape_comes_back_after_140_clusters():
    pairs = [(colour_index(c), shape_index(c)) for c in range(141)]
    assert len(set(pairs[:140])) == 140
    assert pairs[140] == pairs[0]
    assert len(MARKERS) == len(PATHS)
