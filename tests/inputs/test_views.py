import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from kernelweave import ViewError
from kernelweave.inputs import Views, as_views, is_multi_view, per_view, read_views, split_columns, take_rows

TABLE = np.arange(20.0).reshape(5, 4)
LEFT, RIGHT = TABLE[:, :3], TABLE[:, 3:]
FRAME = pd.DataFrame(TABLE, columns=["a", "b", "c", "d"])


class Reader(BaseEstimator):
    """The least an estimator needs for its input to be read."""

    def __init__(self, views=None):
        self.views = views


def assert_same_blocks(result, blocks):
    assert len(result) == len(blocks)
    for block, expected in zip(result, blocks, strict=True):
        np.testing.assert_array_equal(block.toarray() if sp.issparse(block) else block, expected)


# Forms of input


@pytest.mark.parametrize("container", [list, tuple])
def test_a_list_or_tuple_of_arrays_gives_numbered_views(container):
    result = as_views(container([LEFT, RIGHT]))
    assert result.names == ("view_0", "view_1")
    assert (len(result), result.n_samples, result.widths) == (2, 5, (3, 1))
    assert_same_blocks(result, [LEFT, RIGHT])


def test_a_dict_gives_named_views_in_its_order():
    result = as_views({"text": RIGHT, "image": LEFT})
    assert result.names == ("text", "image")
    assert_same_blocks(result, [RIGHT, LEFT])
    assert result["image"] is result[1]


@pytest.mark.parametrize("table", [TABLE, TABLE.tolist(), FRAME, sp.csr_array(TABLE)], ids=lambda t: type(t).__name__)
def test_one_table_without_views_is_one_view(table):
    result = as_views(table)
    assert (result.names, result.widths) == (("X",), (4,))
    assert_same_blocks(result, [TABLE])


@pytest.mark.parametrize(
    "columns",
    [
        [slice(0, 3), slice(3, None)],
        (slice(0, 3), slice(3, 4)),
        [[0, 1, 2], [3]],
        [np.array([0, 1, 2]), 3],
        [[0, 1, 2], [-1]],
        [range(3), (3,)],
        [[True, True, True, False], np.array([False, False, False, True])],
        {"view_0": slice(None, 3), "view_1": [3]},
    ],
    ids=repr,
)
def test_columns_by_slice_number_or_mask_divide_the_table_alike(columns):
    for table in (TABLE, FRAME, sp.csr_array(TABLE)):
        result = as_views(table, views=columns)
        assert result.names == ("view_0", "view_1")
        assert_same_blocks(result, [LEFT, RIGHT])


@pytest.mark.parametrize(
    "columns", [[["a", "b", "c"], ["d"]], [FRAME.columns[:3], "d"], [np.array(["a", "b", "c"]), slice(3, 4)]], ids=repr
)
def test_columns_of_a_frame_can_be_named(columns):
    assert_same_blocks(as_views(FRAME, views=columns), [LEFT, RIGHT])


def test_columns_come_in_the_order_asked_for_and_may_serve_two_views():
    result = as_views(FRAME, views={"reversed": ["d", "a"], "all": slice(None)})
    assert_same_blocks(result, [TABLE[:, [3, 0]], TABLE])


def test_a_dict_of_columns_names_the_views():
    assert as_views(TABLE, views={"text": [0], 7: [1]}).names == ("text", "7")


def test_nested_plain_lists_of_numbers_are_one_table():
    rows = [[1, 2], [3, 4], [5, 6]]
    assert not is_multi_view(rows)
    assert_same_blocks(as_views(rows), [np.array(rows)])


def test_lists_of_tables_as_plain_lists_are_views():
    views = [[[1, 2], [3, 4]], [[5], [6]]]
    assert is_multi_view(views)
    assert_same_blocks(as_views(views), [np.array(view) for view in views])


def test_a_list_of_one_array_is_one_numbered_view():
    assert as_views([TABLE]).names == ("view_0",)


def test_a_list_of_rows_is_one_table_even_when_the_rows_are_arrays():
    assert_same_blocks(as_views(list(TABLE)), [TABLE])


@pytest.mark.parametrize(
    "X",
    [TABLE, FRAME, sp.csr_array(TABLE), sp.dok_array(TABLE), [], "text", [1, 2], TABLE[0]],
    ids=lambda X: type(X).__name__,
)
def test_tables_rows_and_text_are_not_taken_for_views(X):
    assert not is_multi_view(X)


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix, sp.lil_matrix, sp.dok_array])
def test_sparse_views_stay_sparse_as_csr(form):
    for result in (as_views([form(LEFT), RIGHT]), as_views(form(TABLE), views=[slice(0, 3), [3]])):
        assert isinstance(result[0], sp.csr_array)
        assert result[0].dtype == np.float64
        assert_same_blocks(result, [LEFT, RIGHT])


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint64", "bool", "object"])
def test_numbers_of_any_type_become_float64(dtype):
    block = as_views({"a": (TABLE > 4).astype(dtype)})["a"]
    assert block.dtype == np.float64
    np.testing.assert_array_equal(block, TABLE > 4)


def test_views_of_different_kinds_stand_side_by_side():
    result = as_views({"frame": FRAME, "sparse": sp.coo_array(LEFT), "list": RIGHT.tolist()})
    assert_same_blocks(result, [TABLE, LEFT, RIGHT])


# Slicing and joining


@pytest.mark.parametrize("samples", [[3, 0], slice(1, 4), np.array([True, False, False, True, True])], ids=repr)
def test_take_keeps_the_chosen_samples_of_every_view(samples):
    result = as_views({"dense": LEFT, "sparse": sp.csr_array(RIGHT)}).take(samples)
    assert result.names == ("dense", "sparse")
    assert sp.issparse(result["sparse"])
    assert_same_blocks(result, [LEFT[samples], RIGHT[samples]])
    assert result.n_samples == len(LEFT[samples])


ROWS = [[3, 0], np.array([3, 0]), slice(1, 4), np.array([True, False, False, True, True]), []]
TABLES = {
    "array": (LEFT, np.asarray),
    "float32": (LEFT.astype(np.float32), np.asarray),
    "frame": (FRAME, pd.DataFrame.to_numpy),
    "csr": (sp.csr_array(LEFT), lambda table: table.toarray()),
    "coo": (sp.coo_array(LEFT), lambda table: table.toarray()),
    "csc matrix": (sp.csc_matrix(LEFT), lambda table: table.toarray()),
    "nested list": (LEFT.tolist(), lambda rows: np.array(rows).reshape(-1, 3)),
}


@pytest.mark.parametrize("rows", ROWS, ids=repr)
@pytest.mark.parametrize("kind", TABLES)
def test_rows_of_a_table_are_taken_in_its_form(kind, rows):
    table, dense = TABLES[kind]
    taken = take_rows(table, rows)
    np.testing.assert_array_equal(dense(taken), dense(table)[rows])
    if kind == "frame":
        assert isinstance(taken, pd.DataFrame)
        assert list(taken.index) == list(FRAME.index[rows])
    elif kind == "nested list":
        assert isinstance(taken, list)
    elif sp.issparse(table):
        assert taken.format == "csr"
    else:
        assert taken.dtype == table.dtype


@pytest.mark.parametrize("rows", ROWS, ids=repr)
@pytest.mark.parametrize("container", [list, tuple, dict])
def test_rows_of_views_are_taken_from_each(container, rows):
    views = {"dense": LEFT, "frame": FRAME, "sparse": sp.coo_array(RIGHT)}
    X = views if container is dict else container(views.values())
    taken = take_rows(X, rows)
    if container is dict:
        assert list(taken) == list(views)
        taken = list(taken.values())
    assert isinstance(taken, list)
    assert isinstance(taken[1], pd.DataFrame)
    for view, whole in zip(taken, (LEFT, TABLE, RIGHT), strict=True):
        np.testing.assert_array_equal(view.toarray() if sp.issparse(view) else view, whole[rows])


def test_rows_of_a_mapped_array_are_read_and_nothing_else(tmp_path):
    np.save(tmp_path / "x.npy", TABLE)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    taken = take_rows([mapped], slice(1, 3))[0]
    assert isinstance(taken, np.memmap)
    np.testing.assert_array_equal(taken, TABLE[1:3])


def test_joined_views_give_the_table_back():
    np.testing.assert_array_equal(as_views([LEFT, RIGHT]).joined(), TABLE)


def test_joined_views_are_sparse_when_one_is():
    joined = as_views([LEFT, sp.csr_array(RIGHT)]).joined()
    assert sp.issparse(joined)
    np.testing.assert_array_equal(joined.toarray(), TABLE)


def test_views_cannot_be_changed_and_survive_pickling():
    result = as_views([LEFT, RIGHT])
    with pytest.raises(AttributeError):
        result.names = ("other",)
    again = pickle.loads(pickle.dumps(result))
    assert again.names == result.names
    assert_same_blocks(again, [LEFT, RIGHT])


def test_inputs_are_left_untouched():
    views = {"dense": LEFT.copy(), "frame": FRAME.copy(), "sparse": sp.csc_array(RIGHT)}
    columns = {"u": ["a", "b"], "v": slice(2, None)}
    before, columns_before = copy.deepcopy(views), copy.deepcopy(columns)
    as_views(views).take([0, 1])
    as_views(views["frame"], views=columns)
    np.testing.assert_array_equal(views["dense"], before["dense"])
    pd.testing.assert_frame_equal(views["frame"], before["frame"])
    assert isinstance(views["sparse"], sp.csc_array)
    np.testing.assert_array_equal(views["sparse"].toarray(), RIGHT)
    assert columns == columns_before


def test_read_only_input_is_taken():
    table = TABLE.copy()
    table.flags.writeable = False
    assert_same_blocks(as_views(table, views=[[0, 1, 2], [3]]), [LEFT, RIGHT])


# Alignment


def test_views_of_different_length_are_refused_with_every_name_and_length():
    with pytest.raises(ViewError, match=r"'text' has 5, 'image' has 3, 'sound' has 5"):
        as_views({"text": LEFT, "image": LEFT[:3], "sound": RIGHT})


def test_frames_with_other_row_labels_are_refused_by_name():
    reverse = FRAME.iloc[::-1]
    with pytest.raises(ViewError, match=r"'first' and 'reverse' have different row labels"):
        as_views({"first": FRAME, "plain": TABLE, "reverse": reverse})


def test_frames_with_equal_row_labels_and_plain_arrays_go_together():
    named = FRAME.set_axis(list("vwxyz"))
    assert as_views([named, named.copy(), TABLE]).n_samples == 5


# Values that cannot be used


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, pd.DataFrame])
def test_a_view_that_is_not_finite_is_refused_by_name(value, form):
    bad = LEFT.copy()
    bad[2, 1] = value
    with pytest.raises(ViewError, match=r"View 'image'.*(NaN|infinity)"):
        as_views({"text": RIGHT, "image": form(bad)})
    with pytest.raises(ViewError, match=r"View 'view_1'"):
        as_views([RIGHT, form(bad)])
    with pytest.raises(ViewError, match="X"):
        as_views(form(bad))


@pytest.mark.parametrize(
    "bad",
    [
        np.array([["red"], ["blue"]]),
        np.array([["red"], ["blue"]], dtype=object),
        pd.DataFrame({"number": [1, 2], "colour": ["red", "blue"]}),
        pd.DataFrame({"colour": pd.Categorical(["red", "blue"])}),
        [["red"], ["blue"]],
    ],
    ids=["str", "object", "frame", "categories", "list"],
)
def test_text_is_refused_with_the_view_and_the_value(bad):
    with pytest.raises(ValueError, match=r"view 'colours'.*red"):
        as_views({"size": [[1], [2]], "colours": bad})
    with pytest.raises(ValueError, match=r"X .*red"):
        as_views(bad)


def test_complex_numbers_are_refused_by_name():
    with pytest.raises(ViewError, match=r"view 'waves'.*Complex"):
        as_views({"waves": LEFT * 1j})


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_an_empty_view_is_refused_by_name_and_shape(shape):
    with pytest.raises(ViewError, match=rf"view 'empty'.*\({shape[0]}, {shape[1]}\)"):
        as_views({"empty": np.empty(shape)})


@pytest.mark.parametrize("X", [{}, [], ()], ids=repr)
def test_no_views_at_all_are_refused(X):
    with pytest.raises(ViewError, match="X"):
        as_views(X)


@pytest.mark.parametrize("bad", [TABLE[0], TABLE[None], 3.0, None], ids=["1-D", "3-D", "scalar", "None"])
def test_a_view_of_another_shape_is_refused_by_name(bad):
    with pytest.raises(ViewError, match=r"view 'odd'.*(dim|2D|2-dimensional)"):
        as_views({"even": TABLE, "odd": bad})


@pytest.mark.parametrize("bad", [TABLE[:, 0], TABLE[None], "text"], ids=["1-D", "3-D", "text"])
def test_a_list_with_a_part_that_is_no_view_is_refused_with_its_place(bad):
    with pytest.raises(ViewError, match="view_1"):
        as_views([TABLE, bad])


def test_a_ragged_list_is_refused_by_name():
    with pytest.raises(ValueError, match=r"X|view_0"):
        as_views([[[1, 2], [3]], [[1], [2]]])


@pytest.mark.parametrize("X", [TABLE[0], TABLE[None], 3.0, None], ids=["1-D", "3-D", "scalar", "None"])
def test_a_table_of_another_shape_is_refused(X):
    with pytest.raises(ViewError, match=r"X: .*(dim|2D|2-dimensional)"):
        as_views(X)


# Columns that cannot be used


@pytest.mark.parametrize("columns", [[4], [-5], [0, 99], [0.5], [True] * 5, [True, False]], ids=repr)
def test_columns_that_the_table_does_not_have_are_refused(columns):
    with pytest.raises(ViewError, match=r"View 'odd'.*0\.\.3|View 'odd'.*4"):
        as_views(TABLE, views={"odd": columns})


def test_unknown_column_names_are_refused_and_listed():
    with pytest.raises(ViewError, match=r"View 'odd'.*\['x', 'y'\].*'a', 'b'"):
        as_views(FRAME, views={"odd": ["a", "x", "y"]})


def test_column_names_need_a_frame():
    with pytest.raises(ViewError, match=r"View 'odd' names columns \['a'\].*DataFrame"):
        as_views(TABLE, views={"odd": ["a"]})


@pytest.mark.parametrize("columns", [[], slice(4, 9), [False] * 4], ids=repr)
def test_a_view_without_columns_is_refused_by_name(columns):
    with pytest.raises(ViewError, match=r"View 'void' has no columns"):
        as_views(TABLE, views={"void": columns})


@pytest.mark.parametrize("views", [[], {}, ()], ids=repr)
def test_an_empty_choice_of_views_is_refused(views):
    with pytest.raises(ViewError, match="views is empty"):
        as_views(TABLE, views=views)


@pytest.mark.parametrize("views", [3, 2.5, object()], ids=["int", "float", "object"])
def test_views_that_are_no_collection_are_refused_by_name(views):
    with pytest.raises((ValueError, TypeError), match="views"):
        as_views(TABLE, views=views)


def test_a_slice_of_column_names_includes_its_last_column_as_in_pandas():
    result = as_views(FRAME, views={"u": slice("a", "c")})
    np.testing.assert_array_equal(result["u"], FRAME.loc[:, "a":"c"].to_numpy())


def test_a_slice_of_unknown_column_names_is_refused_by_name():
    with pytest.raises(ViewError, match=r"View 'u'.*'q'"):
        as_views(FRAME, views={"u": slice("a", "q")})


def test_dividing_columns_of_separate_views_is_refused():
    with pytest.raises(ViewError, match=r"views=\[\[0\]\].*already holds 2 views"):
        as_views([LEFT, RIGHT], views=[[0]])


def test_names_that_read_the_same_are_refused():
    # Views are looked up by the text of their name: 0 and "0" would both give the first one.
    with pytest.raises(ViewError, match="0"):
        as_views({0: LEFT, "0": RIGHT})
    with pytest.raises(ViewError, match="0"):
        as_views(TABLE, views={0: [0], "0": [1]})


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("which", [slice(0, 2), [0, 1], np.array([True, True, False])])
def test_columns_of_a_table_are_laid_out_as_a_table_of_their_own(which, order):
    # Sums over another layout round differently, and clusters may be numbered differently for it.
    table = np.asarray(np.arange(12.0).reshape(4, 3), order=order)
    (block,) = split_columns(table, {"some": which}).blocks
    assert block.flags.c_contiguous
    np.testing.assert_array_equal(block, table[:, :2])


def test_split_columns_without_views_keeps_the_table_itself():
    result = split_columns(TABLE, None)
    assert isinstance(result, Views)
    assert result[0] is TABLE


# What an estimator remembers


def test_reading_for_fit_remembers_names_and_numbers_of_features():
    for X in ({"text": LEFT, "image": RIGHT}, [LEFT, RIGHT]):
        reader = Reader()
        read_views(reader, X, reset=True)
        assert reader.n_features_in_ == 4
        assert list(reader.view_names_) == (list(X) if isinstance(X, dict) else ["view_0", "view_1"])


def test_reading_a_frame_remembers_its_column_names():
    reader = Reader(views={"u": ["a", "b", "c"], "v": ["d"]})
    assert_same_blocks(read_views(reader, FRAME, reset=True), [LEFT, RIGHT])
    assert reader.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert (reader.n_features_in_, list(reader.view_names_)) == (4, ["u", "v"])


def test_reading_separate_views_forgets_the_column_names_of_an_earlier_fit():
    reader = Reader()
    read_views(reader, FRAME, reset=True)
    read_views(reader, [LEFT, RIGHT], reset=True)
    assert not hasattr(reader, "feature_names_in_")


def test_new_samples_may_bring_their_views_in_another_order():
    reader = Reader()
    read_views(reader, {"text": LEFT, "image": RIGHT}, reset=True)
    result = read_views(reader, {"image": RIGHT[:2], "text": LEFT[:2]}, reset=False)
    assert result.names == ("text", "image")
    assert_same_blocks(result, [LEFT[:2], RIGHT[:2]])


def test_new_samples_of_a_divided_table_may_come_as_separate_views_once_the_division_is_dropped():
    reader = Reader(views=[slice(0, 3), slice(3, 4)])
    read_views(reader, TABLE, reset=True)
    result = read_views(reader.set_params(views=None), [LEFT[:1], RIGHT[:1]], reset=False)
    assert_same_blocks(result, [LEFT[:1], RIGHT[:1]])


def test_new_samples_without_a_view_of_training_are_refused_with_both_lists():
    reader = Reader()
    read_views(reader, {"text": LEFT, "image": RIGHT}, reset=True)
    with pytest.raises(ViewError, match=r"\['text', 'image'\].*\['text'\]"):
        read_views(reader, {"text": LEFT}, reset=False)
    with pytest.raises(ViewError, match=r"\['text', 'image'\].*\['text', 'sound'\]"):
        read_views(reader, {"text": LEFT, "sound": RIGHT}, reset=False)


def test_new_samples_with_a_view_of_other_width_are_refused_by_name():
    reader = Reader()
    read_views(reader, {"text": LEFT, "image": RIGHT}, reset=True)
    with pytest.raises(ViewError, match=r"View 'image' has 3 features.*fitted on 1"):
        read_views(reader, {"text": LEFT, "image": LEFT}, reset=False)


def test_new_samples_of_a_table_with_another_number_of_columns_are_refused():
    reader = Reader(views=[[0], [1]])
    read_views(reader, TABLE, reset=True)
    with pytest.raises(ValueError, match=r"X has 3 features.*expecting 4"):
        read_views(reader, LEFT, reset=False)


def test_new_samples_of_a_frame_with_other_column_names_are_refused():
    reader = Reader(views=[["a"], ["b"]])
    read_views(reader, FRAME, reset=True)
    with pytest.raises(ValueError, match="feature names"):
        read_views(reader, FRAME.rename(columns={"a": "z"}), reset=False)


@pytest.mark.parametrize(
    ("one", "many"), [(TABLE[:1], TABLE), ([LEFT[:1], RIGHT[:1]], [LEFT, RIGHT])], ids=["table", "list"]
)
def test_one_sample_is_too_few_to_fit_and_enough_to_predict(one, many):
    reader = Reader()
    with pytest.raises(ValueError, match=r"1 sample\(s\).*minimum of 2"):
        read_views(reader, one, reset=True)
    read_views(reader, many, reset=True)
    assert read_views(reader, one, reset=False).n_samples == 1


@pytest.mark.parametrize(
    ("X", "match"),
    [
        (np.array([["red", "1"], ["blue", "2"]]), r"X .*red"),
        (np.where(TABLE == 3, np.nan, TABLE), r"X contains NaN"),
        ({"odd": np.where(TABLE == 3, np.inf, TABLE)}, r"View 'odd'.*infinity"),
        (TABLE[0], r"2D array"),
        (TABLE[None], r"dim 3"),
    ],
    ids=["text", "nan", "inf", "1-D", "3-D"],
)
def test_an_estimator_reads_with_the_same_care(X, match):
    with pytest.raises(ValueError, match=match):
        read_views(Reader(), X, reset=True)


def test_sparse_tables_stay_sparse_for_an_estimator():
    result = read_views(Reader(views=[slice(0, 3), [3]]), sp.coo_array(TABLE), reset=True)
    assert all(isinstance(block, sp.csr_array) for block in result)
    assert_same_blocks(result, [LEFT, RIGHT])


# One choice per view

NAMES = ("text", "image")


@pytest.mark.parametrize("choice", ["rbf", 0.5, None, 3, np.float64(2.0), len])
def test_one_value_is_that_of_every_view(choice):
    assert per_view(choice, NAMES, "kernel") == [choice, choice]


@pytest.mark.parametrize("container", [list, tuple])
def test_a_list_or_tuple_gives_each_view_its_own_value(container):
    kernels = container(["rbf", None])
    assert per_view(kernels, NAMES, "kernel") == ["rbf", None]
    result = per_view(kernels, NAMES, "kernel")
    result[0] = "linear"
    assert kernels[0] == "rbf"  # arguments are left as they were


def test_a_dict_gives_each_view_its_own_value_whatever_its_order():
    assert per_view({"image": 2.0, "text": "auto"}, NAMES, "beta") == ["auto", 2.0]


def test_a_dict_without_names_of_views_is_one_value_for_all():
    params = {"sigma": 2.0}
    assert per_view(params, NAMES, "kernel_params") == [params, params]
    assert per_view({}, NAMES, "kernel_params") == [{}, {}]
    assert per_view({"text": params, "image": None}, NAMES, "kernel_params") == [params, None]


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (["rbf"], r"kernel has 1 entries for 2 views; give one per view"),
        (("rbf", "rbf", "rbf"), r"kernel has 3 entries for 2 views"),
        ([], r"kernel has 0 entries for 2 views"),
        ({"text": "rbf"}, r"kernel names views \['text'\], but the views are \['text', 'image'\]"),
        ({"text": "rbf", "image": "rbf", "sound": "rbf"}, r"kernel names views \['image', 'sound', 'text'\]"),
        ({"text": "rbf", 3: "rbf"}, r"kernel names views \['3', 'text'\]"),
    ],
)
def test_choices_that_do_not_match_the_views_are_refused_with_what_was_given(choice, message):
    with pytest.raises(ViewError, match=message):
        per_view(choice, NAMES, "kernel")


def test_a_single_view_takes_single_values_lists_and_dicts():
    for choice in ("rbf", ["rbf"], {"X": "rbf"}):
        assert per_view(choice, ("X",), "kernel") == ["rbf"]
