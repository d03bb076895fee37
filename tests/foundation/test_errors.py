"""Messages in pieces: Python users read arguments as Python, other interfaces may write them in other words."""

import pickle

import pytest

from kernelweave.foundation.errors import Argument, DataError, ParameterError, Remedy


@pytest.mark.parametrize("error", [DataError, ParameterError])
def test_a_message_in_pieces_reads_as_one_sentence(error):
    raised = error("x.csv: say so with ", Argument("delimiter", ";"), ". ", Remedy("quote", "Close its quotes."))
    assert str(raised) == "x.csv: say so with delimiter=';'. Close its quotes."
    assert isinstance(raised, ValueError)


def test_a_message_in_one_piece_is_as_it_was():
    assert str(DataError("x.csv: there is no such file.")) == "x.csv: there is no such file."
    assert str(DataError()) == ""


def test_pieces_survive_pickling():
    again = pickle.loads(pickle.dumps(DataError("say ", Argument("header", False))))
    assert again.args == ("say ", Argument("header", False))
    assert str(again) == "say header=False"
